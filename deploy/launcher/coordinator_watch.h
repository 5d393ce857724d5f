// Keeps what the coordinator of the current generation has answered, and for how long it has been
// silent.
//
// Not thread-safe: only the launcher's main thread may use it.

#ifndef SATRAP_DEPLOY_LAUNCHER_COORDINATOR_WATCH_H_
#define SATRAP_DEPLOY_LAUNCHER_COORDINATOR_WATCH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/grpc_channel.h"
#include "deploy/launcher/process/generation_cause.h"
#include "deploy/launcher/stop_request.h"
#include "proto/control.pb.h"

namespace satrap {

class CoordinatorWatch {
 public:
  // Watches the coordinator of the next generation, which listens at `address` and has not answered
  // yet. Forgets what earlier coordinators have answered, except the run's id. Errors are those of
  // GrpcChannel::Create; then nothing has changed.
  absl::Status Begin(const std::string& address);
  // Asks for the status once, and waits for at most half a second. Answers after the first must be
  // from the same run. REQUIRES: Begin has succeeded; this holds for all methods below
  void Ask();
  // Whether it is time to ask again.
  bool IsDue() const;
  void AskSoon() { next_ms_ = 0; }
  // Sends the wish to the coordinator once. Returns whether the coordinator has accepted it.
  // REQUIRES: as StopRequest::Try
  bool TryStop(StopRequest* stop);

  // The newest answer, unless SetStatus has replaced it.
  const StatusAnswer& status() const { return status_; }
  RunState state() const { return status_.state(); }
  void SetStatus(StatusAnswer status) { status_ = std::move(status); }

  bool has_answered() const { return has_answered_; }  // in this generation
  bool has_run() const { return has_run_; }            // it has said RUNNING
  bool answers() const { return answers_; }            // it has answered the last call
  // Whether the coordinator says that its generation is over without the run having finished or
  // stopped.
  bool SaysGenerationIsOver() const { return state() == FAILED || state() == RESTARTING; }
  // Whether the coordinator has not answered for longer than the limit.
  bool IsSilent() const;
  CoordinatorView view() const { return {status_, answers_, IsSilent(), over_ms_}; }

 private:
  std::unique_ptr<rpc::GrpcChannel> channel_;
  StatusAnswer status_;
  bool has_answered_ = false;
  bool has_run_ = false;
  bool answers_ = false;
  int64_t silent_ms_ = 0;  // for how long it has not answered
  int64_t next_ms_ = 0;
  // When SaysGenerationIsOver first became true, or when the coordinator first said that it writes
  // the run's end; 0 if neither has happened.
  int64_t over_ms_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_COORDINATOR_WATCH_H_
