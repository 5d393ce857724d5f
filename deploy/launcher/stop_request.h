// A StopRequest is the wish for a stop with a last cut. The first Ctrl-C makes this wish.
//
// One attempt is not enough: on a loaded machine the coordinator answers late, and during a change
// of size it refuses. So the wish is sent again until it is accepted or `stop_seconds` are over.
// The coordinator treats repeated wishes to stop as one.
//
// Not thread-safe: only the launcher's main thread may use it.

#ifndef SATRAP_DEPLOY_LAUNCHER_STOP_REQUEST_H_
#define SATRAP_DEPLOY_LAUNCHER_STOP_REQUEST_H_

#include <cstdint>
#include <string>

#include "common/rpc/grpc_channel.h"

namespace satrap {

class StopRequest {
 public:
  // Starts the clock of `stop_seconds`. REQUIRES: !begun()
  void Begin(double stop_seconds);
  // Sends the wish once, to the run `run_id`, and waits for at most `timeout_ms` for the answer.
  // Returns taken(). REQUIRES: begun() and !taken()
  bool Try(rpc::GrpcChannel* channel, uint64_t run_id, int64_t timeout_ms);

  bool begun() const { return deadline_ms_ != 0; }
  // Whether the coordinator has accepted the wish, so that the run ends with a last cut.
  bool taken() const { return taken_; }
  // Whether Begin was called, and `stop_seconds` are over.
  bool IsLate() const;
  // A text that says why there is no last cut. REQUIRES: IsLate()
  std::string LateText() const;
  // The reason why the wish is not accepted yet: "the coordinator does not answer", or why the
  // coordinator has refused.
  const std::string& waits_for() const { return waits_for_; }

 private:
  double stop_seconds_ = 0;
  int64_t deadline_ms_ = 0;
  bool taken_ = false;
  std::string waits_for_ = "the coordinator does not answer";
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_STOP_REQUEST_H_
