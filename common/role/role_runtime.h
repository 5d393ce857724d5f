// A RoleRuntime is everything that the process of a role has around its engine: flags, the job,
// log, metrics endpoint, server, heartbeats to the coordinator, connections to the peers, and the
// end. A role's main is
//
//     absl::Status RunEmbeddingPs(RoleRuntime& runtime) {
//       PsEngine engine(runtime.job(), runtime.envelope(), runtime.executor());
//       RETURN_IF_ERROR(engine.Load(path));  // may take long: heartbeats run meanwhile
//       RETURN_IF_ERROR(runtime.Serve({{kPsMethods, &engine}}));
//       RETURN_IF_ERROR(runtime.Join());     // returns when every role is ready
//       runtime.WaitForFinish();             // afterwards nothing calls the engine any more
//       return absl::OkStatus();
//     }
//     int main(int argc, char** argv) { return RunRole(EMBEDDING_PS, argc, argv, RunEmbeddingPs); }
//
// Start registers this process, as a new incarnation, with the coordinator, which answers with the
// envelope that every call carries, the job, and the cut to begin from. Only then can an engine be
// made. Heartbeats run from here on. Join tells the coordinator, by heartbeat, that this role is
// ready, and waits until all are; from here on the addresses of the members are known. A role whose
// engine needs its peers joins first, makes its channels and engine, and then serves. Calls that
// arrive before the role serves find no server and are repeated.
//
// Endings. If the coordinator says FINISHED, WaitForFinish returns, and the process exits with 0.
// Every other ending logs its reason, leaves an Ending (ending.h) and exits the process from the
// runtime's control thread, whatever other threads are doing, without destructors. So if a file
// must not be left half written, write it under another name and then rename it. Exit codes:
//   0       The coordinator says STOPPED; or the run had finished before this process joined it.
//   1, 77   The coordinator says FAILED. A failure given to failure_sink is first reported to the
//           coordinator, whose answer says how the run ends. 1 if this process failed first, or
//           was built from other sources; else 77.
//   75, 76  The coordinator says RESTARTING: 75 if this process failed first, else 76. Also 75: the
//           coordinator gives no answer for 8 s or does not know this process; or the coordinator
//           or a peer is of another run or generation.
//
// Signals. The first SIGTERM asks the coordinator to stop the run. In pods it asks only this
// process to leave: the heartbeats report that, and the run continues without the process. This
// process continues to serve until the generation has its last cut. If the cut takes longer than
// stop_seconds and a little more, the process exits with 75. A second SIGTERM, or a SIGINT, exits
// with 0 at once. The local launcher does not use these signals: it asks the coordinator itself,
// and sends SIGKILL.
//
// Thread-safe, but Serve, Join and WaitForFinish are for the main thread.

#ifndef SATRAP_COMMON_ROLE_ROLE_RUNTIME_H_
#define SATRAP_COMMON_ROLE_ROLE_RUNTIME_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/log/log.h"
#include "common/metrics/metrics.h"
#include "common/role/coordinator_client.h"
#include "common/role/kill_points.h"
#include "common/role/role_flags.h"
#include "common/rpc/rpc.h"
#include "common/thread/executor.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class RoleRuntime {
 private:
  struct Rep;

 public:
  // Starts the log and the metrics endpoint, registers with the coordinator, and starts the job's
  // executor. The coordinator may be started later than this process, by up to a minute. From here
  // on SIGTERM and SIGINT are handled. Errors are those of CoordinatorClient::Register. REQUIRES:
  // no other thread has been started in this process
  static absl::StatusOr<std::unique_ptr<RoleRuntime>> Start(Role role, const RoleFlags& flags);
  ~RoleRuntime();

  const JobConfig& job() const;
  const RoleFlags& flags() const;
  int index() const;                 // of this replica in its role
  const Envelope& envelope() const;  // what every call of this generation carries
  // The folder of the cut from which this generation begins. If it begins without a cut,
  // cut_folder(), position() and ledger() are empty.
  const std::string& cut_folder() const;
  const RunPosition& position() const;
  const LedgerState& ledger() const;   // data loaders and rank 0 only
  uint64_t order_fingerprint() const;  // that of the run's cuts. REQUIRES: after Join
  // These set the sink for wishes for a cut, and the sink for partitions that are dealt to a
  // loader, whichever loader it is. Heartbeats bring both. A sink may receive the same wish or
  // partition several times. It is called on a thread of the runtime and must not block. Null
  // removes the sink, after waiting for a call that is running.
  void SetWishSink(std::function<void(const CutWish&)> sink);
  void SetDealtSink(std::function<void(const DealtPartition&)> sink);
  KillPoints* kill_points();  // end this process where the job says so
  Executor* executor();       // `threads` of the role's section in the job; outlives any engine
  const Logger& logger() const;
  MetricsRegistry* metrics();
  // Engines call this sink with an error, which ends this process. The sink never blocks. Only the
  // first error counts.
  std::function<void(absl::Status)> failure_sink();
  // Returns if `status` is OK. Otherwise ends the process as if the body had returned this error,
  // but without unwinding. (Unwinding would destroy objects such as a collective, and peers would
  // notice that before this role has reported its error.)
  void ExitUnlessOk(const absl::Status& status);

  // Starts a server for `methods` at flags().listen. Large messages are sent and received in chunks
  // (common/chunk/chunked_handler.h). `handler` must live until WaitForFinish has returned.
  // FAILED_PRECONDITION if the address is in use; INVALID_ARGUMENT if there is no --listen.
  // REQUIRES: called at most once
  absl::Status Serve(absl::Span<const rpc::Method> methods, rpc::Handler* handler);

  // Fills in the progress report of a heartbeat. Called once a second; must not block.
  using ProgressSource = std::function<void(HeartbeatRequest*)>;
  // The destructor removes the source, after waiting for a call that is running.
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
  // The registration must not outlive the runtime or anything that the source refers to. REQUIRES:
  // only one registration at a time
  [[nodiscard]] ProgressRegistration SetProgressSource(ProgressSource source);

  // Reports this role as ready and waits until every role of the job is ready. Does not return if
  // the run ends first. REQUIRES: called at most once
  absl::Status Join();

  // Waits, for 30 s at most, until this process sees the run's folder as the coordinator does
  // (common/checkpoint/storage_check.h); FAILED_PRECONDITION if it does not. RunRole calls it
  // before the body, so that a missing mount is not mistaken for a missing cut.
  absl::Status AwaitRunFolder();

  // The address of a member: the value of its flag --advertise. REQUIRES: after Join; the job has
  // this member
  std::string AddressOf(Role role, int index) const;
  // A connection to a member, owned by the runtime. `allocator` is
  // EndpointOptions.payload_allocator; only the first call for a member sets it.
  rpc::Channel* ChannelTo(Role role, int index, std::shared_ptr<BufferAllocator> allocator = {});
  // Only for LeaseSplit. For other calls use coordinator() and the methods of this class.
  rpc::Channel* coordinator_channel();
  CoordinatorClient* coordinator();  // for blocking calls: the rendezvous of collectives

  // Only rank 0 calls this. All roles then see FINISHED and exit with 0.
  absl::Status Finish(const RunResult& result);

  // Waits for FINISHED, calls `stop_engine` if given, stops server and executor and closes all
  // channels to peers. Afterwards nothing calls an engine any more. `stop_engine` is for engines
  // that call peers from their own threads: when it returns, these threads must have stopped.
  void WaitForFinish(const std::function<void()>& stop_engine = nullptr);

 private:
  explicit RoleRuntime(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

// Parses the flags, starts the runtime and calls `body`. Returns 0 if `body` returned OK. Otherwise
// the error of `body` ends the process as described above ("Endings"), but only after the objects
// of `body` are destroyed (ExitUnlessOk does not destroy them). `own` are flags that only this role
// has. REQUIRES: no other thread has been started in this process
int RunRole(Role role, int argc, char** argv,
            absl::FunctionRef<absl::Status(RoleRuntime& runtime)> body,
            const std::vector<Flag>& own = {});

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_ROLE_RUNTIME_H_
