// While a run pauses between two generations, there is no coordinator, and a PauseServer serves at
// its address. It answers Status, and accepts a wish to stop. So `satrap stop` works even for a run
// that is restarted again and again and rarely has a coordinator. It refuses other wishes and other
// calls.
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
  // Listens at `address`. Answers Status with `status`; after the first wish to stop, with STOPPED
  // and the ending `stopped`. Errors are those of GrpcServer::Start. REQUIRES: no coordinator
  // listens at `address`
  static absl::StatusOr<std::unique_ptr<PauseServer>> Start(const std::string& address,
                                                            StatusAnswer status, Ending stopped);
  // Like Start, for a run that continues after a generation that ended with `last`. `status` and
  // `progress` are as for LossText. Null if the server cannot be started.
  static std::unique_ptr<PauseServer> ForRun(const Generation& generation, StatusAnswer status,
                                             const Ending& last, const RunProgress& progress);
  // Once the destructor has returned, the address is free.
  ~PauseServer() override;

  bool stop_wished() const;
  // Waits until a Status call was answered with STOPPED, but at most for `timeout_ms`.
  void AwaitTold(int64_t timeout_ms);
  // The status that Status now answers with.
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
