// The coordinator's process: serves a CoordinatorEngine until the run is over. Each process is a
// new run, with a run id of its own.
//
// It exits once every member has been told of the end and the launcher or `satrap status` has had
// time to ask for the last status, or at once on SIGTERM or SIGINT. Exit code 1 if the run failed
// or the coordinator could not start.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/job_config.h"
#include "common/log/log.h"
#include "common/role/coordinator_client.h"
#include "common/role/random_id.h"
#include "common/role/role_flags.h"
#include "common/rpc/grpc_server.h"
#include "common/thread/thread_pool_executor.h"
#include "deploy/coordinator/coordinator_engine.h"

namespace satrap {
namespace {

// How long the coordinator still answers Status after every member knows the end.
constexpr int kLingerSeconds = 10;

constexpr rpc::Method kMethods[] = {kRegister, kHeartbeat, kLeaseSplit, kStoreSet,
                                    kStoreGet, kFinish,    kFail,       kStatus};

// False if no signal came within a second.
bool SignalWithinASecond(const sigset_t& signals) {
  const timespec second = {1, 0};
  return sigtimedwait(&signals, nullptr, &second) > 0;
}

absl::Status Run(const std::vector<std::string>& args) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);

  ASSIGN_OR_RETURN(const RoleFlags flags, ParseRoleFlags(COORDINATOR, args));
  if (flags.listen.empty()) return absl::InvalidArgumentError("--listen is missing");
  ASSIGN_OR_RETURN(const JobConfig job, LoadResolvedJob(flags.config));
  ThreadPoolExecutor executor(1);
  const uint64_t run_id = RandomId();
  CoordinatorEngine engine(job, run_id, &executor);
  ASSIGN_OR_RETURN(auto server,
                   rpc::GrpcServer::Start(flags.listen, rpc::EndpointOptions(),
                                          {rpc::GrpcServer::Service{kMethods, &engine}}));
  ASSIGN_OR_RETURN(const Logger logger, Logger::Create("coordinator/0", LogLevel::kInfo, ""));
  logger.Info("waiting for members", {{"job", job.name()},
                                      {"run", absl::StrCat(absl::Hex(run_id, absl::kZeroPad16))},
                                      {"address", server->address()}});
  RunState state = STARTING;
  for (int seconds_known = 0; seconds_known < kLingerSeconds;) {
    if (SignalWithinASecond(signals)) break;
    const StatusAnswer status = engine.Status();
    if (status.state() != state) {
      logger.Info("the run has changed its state",
                  {{"state", RunState_Name(status.state())}, {"reason", status.stop_reason()}});
    }
    state = status.state();
    if (engine.EveryoneKnowsTheEnd()) ++seconds_known;
  }
  server->Shutdown(/*deadline_ms=*/200);
  executor.Stop();
  const StatusAnswer status = engine.Status();
  return status.state() == FAILED ? absl::AbortedError(status.stop_reason()) : absl::OkStatus();
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  const absl::Status status = satrap::Run(std::vector<std::string>(argv + 1, argv + argc));
  if (!status.ok()) fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
