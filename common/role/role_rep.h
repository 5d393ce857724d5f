// The implementation of RoleRuntime. role_control.cc has its control thread, role_runtime.cc the
// rest.

#ifndef SATRAP_COMMON_ROLE_ROLE_REP_H_
#define SATRAP_COMMON_ROLE_ROLE_REP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/chunk/chunk.h"
#include "common/chunk/chunk_memory.h"
#include "common/chunk/chunked_handler.h"
#include "common/life/life_sign.h"
#include "common/role/ending.h"
#include "common/role/random_id.h"
#include "common/role/role_runtime.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/grpc_channel.h"
#include "common/rpc/grpc_server.h"
#include "common/rpc/timeouts.h"
#include "common/thread/mutex.h"
#include "common/thread/thread_pool_executor.h"

namespace satrap {

struct RoleRuntime::Rep {
  Rep(Role role, const RoleFlags& flags, Logger logger)
      : role(role),
        flags(flags),
        name(MemberName(role, flags.role_index)),
        logger(std::move(logger)),
        life(flags.alive),
        metrics(std::string(RoleName(role)), flags.role_index) {}
  ~Rep();

  absl::Status Register();
  absl::StatusOr<RegisterAnswer> AwaitPlace(const RegisterRequest& request);
  absl::Status ConnectAnew();
  // Ends the process without destructors, because other threads may be using anything. Logs
  // `message`, and leaves `ending` for the process that started this one.
  [[noreturn]] void ExitNow(int code, absl::string_view message, const Ending& ending);
  // Like ExitNow above. The Ending has this process as its origin, the reason `why` and the text
  // `message`.
  [[noreturn]] void ExitNow(int code, Ending::Why why, absl::string_view message);
  // Returns false and does nothing if the run has finished. The peers then end in any order, so
  // calls to them may fail.
  bool ReportFailure(absl::Status status);
  void Wake();

  // The control thread: it handles signals, failures, heartbeats and the end.
  void Control();
  int64_t WaitMs(int64_t now_ms);
  void HandleSignal();
  void HandleFailure();
  void LogFailure(const absl::Status& status);
  void ExitAfterFailure(const FailAnswer& answer, const Ending& own);
  void SendStopWish();
  void HandleStopWish();
  void SendHeartbeat();
  void HandleHeartbeat(const absl::StatusOr<rpc::Message>& message);
  [[noreturn]] void ExitWithoutPlace(const std::string& why);
  void ExitIfOver(const HeartbeatAnswer& answer);
  void CheckSilence(int64_t now_ms);

  const Role role;
  const RoleFlags flags;
  const std::string name;
  const Logger logger;
  const LifeSign life;
  MetricsRegistry metrics;
  std::unique_ptr<MetricsServer> metrics_server;
  const uint64_t incarnation = RandomId();
  // Register sets these before it sets `registered`; afterwards they are constant.
  Envelope envelope;
  RegisterAnswer registration;
  std::unique_ptr<KillPoints> kill_points;
  rpc::EndpointOptions endpoint_options;
  std::unique_ptr<ThreadPoolExecutor> executor;
  // Handles messages that peers send in chunks.
  const std::shared_ptr<rpc::ChunkMemory> chunk_memory = std::make_shared<rpc::ChunkMemory>(
      rpc::kLargestMessageBytes, rpc::RpcTimeouts().silence_timeout_ms * 1000);
  std::unique_ptr<rpc::ChunkedHandler> handler;  // outlives the server
  std::unique_ptr<rpc::GrpcServer> server;

  int signal_fd = -1;
  int wake_fd = -1;
  std::thread control;

  // Only the control thread uses these.
  int64_t last_answer_ms = 0;
  int64_t next_heartbeat_ms = 0;
  int64_t finished_ms = 0;
  bool heartbeat_in_flight = false;
  bool is_heard = false;  // a heartbeat was answered: this process is a member
  int64_t failed_ms = 0;  // when it has failed without being heard; 0: it has not
  bool failure_is_logged = false;
  int64_t stop_deadline_ms = 0;  // 0: this process has not been asked to stop or to leave
  bool leaving = false;          // it was asked to leave; else the run is asked to stop
  bool stop_wish_open = false;   // the coordinator does not know the wish yet
  bool stop_wish_in_flight = false;

  Mutex mutex;
  CondVar changed;
  bool stopping GUARDED_BY(mutex) = false;
  bool registered GUARDED_BY(mutex) = false;
  bool ready GUARDED_BY(mutex) = false;
  bool waiting_for_finish GUARDED_BY(mutex) = false;
  RunState state GUARDED_BY(mutex) = STARTING;
  absl::Status failure GUARDED_BY(mutex);
  absl::optional<absl::StatusOr<rpc::Message>> heartbeat_answer GUARDED_BY(mutex);
  absl::optional<absl::Status> stop_wish_answer GUARDED_BY(mutex);
  std::vector<Member> members GUARDED_BY(mutex);
  uint64_t order_fingerprint GUARDED_BY(mutex) = 0;
  std::map<std::string, std::unique_ptr<rpc::Channel>> channels GUARDED_BY(mutex);

  Mutex progress_mutex;
  ProgressSource progress_source GUARDED_BY(progress_mutex);
  std::function<void(const CutWish&)> wish_sink GUARDED_BY(progress_mutex);
  std::function<void(const DealtPartition&)> dealt_sink GUARDED_BY(progress_mutex);

  // These come last, so that they are destroyed first: their callbacks use the members above.
  std::unique_ptr<rpc::GrpcChannel> coordinator_channel;
  std::unique_ptr<CoordinatorClient> coordinator;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_ROLE_REP_H_
