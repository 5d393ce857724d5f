// While a run pauses between two generations, a PauseServer answers at the coordinator's address
// instead of the coordinator: Status, and the wish to stop, which it takes. So `satrap stop`
// reaches even a run that is restarted again and again and hardly ever has a coordinator to ask. It
// refuses other wishes, and other calls.
//
// Thread-safe.

#ifndef SATRAP_DEPLOY_LAUNCHER_PAUSE_SERVER_H_
#define SATRAP_DEPLOY_LAUNCHER_PAUSE_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/grpc_server.h"
#include "common/rpc/rpc.h"
#include "common/thread/mutex.h"
#include "deploy/launcher/process/generation.h"
#include "deploy/launcher/process/run_progress.h"
#include "proto/control.pb.h"

namespace satrap {

class PauseServer final : public rpc::Handler {
 public:
  // Listens at `address` and answers Status with `status`, but after the first wish to stop with
  // STOPPED and `stopped`. Errors as GrpcServer::Start. REQUIRES: no coordinator listens there
  static absl::StatusOr<std::unique_ptr<PauseServer>> Start(const std::string& address,
                                                            StatusAnswer status, Ending stopped);
  // As Start, for a run that goes on after `last`; `status` and `progress` as for LossText. Null if
  // it cannot be started.
  static std::unique_ptr<PauseServer> ForRun(const Generation& generation, StatusAnswer status,
                                             const Ending& last, const RunProgress& progress);
  // The address is free when the destructor returns.
  ~PauseServer() override;

  bool stop_wished() const;
  // Waits until a Status call was answered with STOPPED, or for `timeout_ms`.
  void AwaitTold(int64_t timeout_ms);
  // The answer to Status.
  StatusAnswer status() const;

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

 private:
  PauseServer(StatusAnswer status, Ending stopped);
  absl::StatusOr<WishAnswer> Wish(const WishRequest& request);

  mutable Mutex mutex_;
  CondVar changed_;
  StatusAnswer status_ GUARDED_BY(mutex_);
  Ending stopped_ GUARDED_BY(mutex_);
  bool stop_wished_ GUARDED_BY(mutex_) = false;
  bool told_ GUARDED_BY(mutex_) = false;
  std::unique_ptr<rpc::GrpcServer> server_;  // last, so that it is destroyed first
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PAUSE_SERVER_H_
