// A PauseServer answers in the place of the coordinator while a run stands between two generations,
// at the coordinator's address: Status, and the wish to stop, which it takes. So `satrap stop`
// reaches a run that is restarted again and again, of which hardly ever a coordinator is there to
// be asked. It refuses other wishes, and other calls.
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
  // Listens at `address` and answers Status with `status`; from the first wish to stop on as
  // STOPPED with `stopped`. Errors as GrpcServer::Start. REQUIRES: no coordinator listens there
  static absl::StatusOr<std::unique_ptr<PauseServer>> Start(const std::string& address,
                                                            StatusAnswer status, Ending stopped);
  // As Start, for a run that goes on after `last`; `status` and `progress` as for LossText. Null if
  // it cannot be started.
  static std::unique_ptr<PauseServer> ForRun(const Generation& generation, StatusAnswer status,
                                             const Ending& last, const RunProgress& progress);
  // The address is free when it returns.
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
  std::unique_ptr<rpc::GrpcServer> server_;  // last, so that it goes first
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PAUSE_SERVER_H_
