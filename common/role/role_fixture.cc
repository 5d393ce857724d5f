#include "common/role/role_fixture.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <utility>

#include "common/config/text_format.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/grpc_server.h"

namespace satrap {
namespace {

constexpr char kJob[] = R"(
  name: "tiny"
  data {
    synthetic {
      numeric_features: 1
      interacting_features: 0
    }
    numerics { name: "I1" }
  }
  model {
    layers { name: "logit" inputs: "numeric" linear { units: 1 } }
  }
)";

}  // namespace

std::string EndingPathOfTest() {
  return ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
         ".ending";
}

void RunCase(const Body& body, const Prepare& prepare, const std::vector<std::string>& more) {
  std::string dir = ::testing::TempDir() + "role_runtime_test.XXXXXX";
  if (mkdtemp(dir.data()) == nullptr) abort();
  // Uses a relative path, because a socket's path must not exceed 107 bytes, but the folder's path
  // may.
  if (chdir(dir.c_str()) != 0) abort();
  const std::string address = "unix:coordinator";
  FakeCoordinator coordinator;
  JobConfig job;
  if (!ParseText(kJob, "job", &job).ok()) abort();
  coordinator.SetJob(job);
  if (prepare) prepare(coordinator);
  // Blocks these signals here, because the server's threads start before the role and must not
  // receive its signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const rpc::Method methods[] = {kRegister, kHeartbeat, kFail, kFinish, kWish};
  auto server = rpc::GrpcServer::Start(address, rpc::EndpointOptions(),
                                       {rpc::GrpcServer::Service{methods, &coordinator}});
  if (!server.ok()) abort();
  std::vector<std::string> args = {"nn_worker", "--coordinator=" + address, "--advertise=127.0.0.1",
                                   "--ending=" + EndingPathOfTest()};
  args.insert(args.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  const int code = RunRole(NN_WORKER, static_cast<int>(argv.size()), argv.data(),
                           [&](RoleRuntime& runtime) { return body(runtime, coordinator); });
  (*server)->Shutdown(0);
  exit(code);
}

absl::Status FinishRole(RoleRuntime& runtime) {
  const absl::Status finished = runtime.Finish(RunResult());
  runtime.WaitForFinish();
  return finished;
}

}  // namespace satrap
