// A RoleRuntime is what the process of every role has around its engine: flags, the job, log,
// metrics endpoint, server, the coordinator's heartbeats, connections to the peers, and the end.
// A role's main is
//
//     absl::Status RunEmbeddingPs(RoleRuntime& runtime) {
//       PsEngine engine(runtime.job(), runtime.executor(), runtime.failure_sink());
//       RETURN_IF_ERROR(engine.Load(path));  // slow things come before Join: nobody waits yet
//       RETURN_IF_ERROR(runtime.Serve({{kPsMethods, &engine}}));
//       RETURN_IF_ERROR(runtime.Join());     // from here on every role is there
//       runtime.WaitForFinish();             // afterwards nothing calls the engine any more
//       return absl::OkStatus();
//     }
//     int main(int argc, char** argv) {
//       return RunRole(EMBEDDING_PS, argc, argv, RunEmbeddingPs);
//     }
//
// A role whose engine needs its peers joins first, makes its channels and engine, and serves then:
// calls of its peers wait for the server.
//
// Endings. FINISHED at the coordinator lets WaitForFinish return, and the process exits 0. Each
// other ending says why in one line of the log and exits the process from a thread of the runtime's
// own, whatever its other threads are doing, without running destructors: a failure that is told to
// failure_sink (it is told to the coordinator first), FAILED at the coordinator, and 8 s without an
// answer of the coordinator exit 1; SIGTERM and SIGINT exit 0. So a file that must not be left half
// written is written under another name and renamed.
//
// Thread-safe, but Serve, Join and WaitForFinish are for the main thread.

#ifndef SATRAP_COMMON_ROLE_ROLE_RUNTIME_H_
#define SATRAP_COMMON_ROLE_ROLE_RUNTIME_H_

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/executor.h"
#include "common/log/log.h"
#include "common/metrics/metrics.h"
#include "common/role/coordinator_client.h"
#include "common/role/role_flags.h"
#include "common/rpc/grpc_server.h"
#include "common/rpc/rpc.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class RoleRuntime {
 private:
  struct Rep;

 public:
  // Loads the job, starts log, metrics endpoint and executor, and connects to the coordinator.
  // SIGTERM and SIGINT are the runtime's from here on. REQUIRES: no other thread has been started
  // in this process
  static absl::StatusOr<std::unique_ptr<RoleRuntime>> Start(Role role, const RoleFlags& flags);
  ~RoleRuntime();

  const JobConfig& job() const;
  const RoleFlags& flags() const;
  int index() const;  // of this replica in its role
  // What every call of this run carries.
  const Envelope& envelope() const;
  // The role's fixed pool: `threads` of its section in the job. Lives longer than any engine.
  Executor* executor();
  const Logger& logger() const;
  MetricsRegistry* metrics();
  // Where engines report what must end the job. Never blocks; the first report counts.
  std::function<void(absl::Status)> failure_sink();
  // Returns if `status` is OK. Else it is the end as of an error of the body, without return: told
  // to the coordinator before anything of the caller's goes. For a body that owns what peers would
  // miss at once (a collective) and would report first; it calls this while it still has it.
  void ExitUnlessOk(const absl::Status& status);

  // Starts the server at flags().listen. Handlers must live until WaitForFinish has returned.
  // FAILED_PRECONDITION if the address is in use; INVALID_ARGUMENT if there is no --listen.
  // REQUIRES: at most once
  absl::Status Serve(std::initializer_list<rpc::GrpcServer::Service> services);

  // Fills what a heartbeat tells of this role's progress (`train` or `loader`); called once a
  // second from a thread of the runtime, it must not block.
  using ProgressSource = std::function<void(HeartbeatRequest*)>;
  // Takes the source away when it is destroyed, and waits for a call that is under way.
  class ProgressRegistration {
   public:
    ~ProgressRegistration();
    ProgressRegistration(const ProgressRegistration&) = delete;
    ProgressRegistration& operator=(const ProgressRegistration&) = delete;

   private:
    friend class RoleRuntime;
    explicit ProgressRegistration(Rep* rep) : rep_(rep) {}
    Rep* const rep_;
  };
  // Must not outlive the runtime, nor what the source refers to. REQUIRES: one at a time
  [[nodiscard]] ProgressRegistration SetProgressSource(ProgressSource source);

  // Registers at the coordinator and waits until every role of the job has done so.
  // FAILED_PRECONDITION if the coordinator refuses: another job's, or the index is taken.
  absl::Status Join();

  // The member's address (flags.advertise of that process). REQUIRES: after Join; it exists
  std::string AddressOf(Role role, int index) const;
  // A connection to a member that serves. The runtime owns it. REQUIRES: as AddressOf
  rpc::Channel* ChannelTo(Role role, int index);
  // For LeaseSplit. Other calls have methods: coordinator() and this class.
  rpc::Channel* coordinator_channel();
  // Blocking calls, among them the rendezvous of collectives.
  CoordinatorClient* coordinator();

  // Rank 0 ends the run: all roles see FINISHED and exit 0.
  absl::Status Finish(const RunResult& result);

  // Waits for FINISHED, calls `stop_engine` if there is one, then stops the server and the executor
  // and ends all channels to peers: no call, task, timer or callback reaches an engine any more.
  // `stop_engine` is for engines that call peers from threads of their own: they must have ended
  // when it returns. Does not return after any other ending.
  void WaitForFinish(const std::function<void()>& stop_engine = nullptr);

 private:
  explicit RoleRuntime(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

// Parses the flags, starts the runtime and calls `body`; returns 0 if `body` returned OK, else the
// process exits with 1, the error having been logged and, unless the run has finished, told to the
// coordinator; what `body` owned is gone by then (see ExitUnlessOk). REQUIRES: no other thread has
// been started in this process
int RunRole(Role role, int argc, char** argv,
            absl::FunctionRef<absl::Status(RoleRuntime& runtime)> body);

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_ROLE_RUNTIME_H_
