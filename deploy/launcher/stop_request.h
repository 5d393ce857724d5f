// A StopRequest is the wish for a last cut that the first Ctrl-C makes.
//
// One attempt is not enough: on a loaded machine the coordinator answers late, and while the run
// changes its size it refuses. So the wish is made again until it is taken or `stop_seconds` are
// over. The coordinator treats repeated wishes to stop as one.
//
// Not thread-safe: for the launcher's main thread.

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
  // Makes the wish once, to the run `run_id`, and waits for at most `timeout_ms` for the answer.
  // Returns taken(). REQUIRES: begun() and !taken()
  bool Try(rpc::GrpcChannel* channel, uint64_t run_id, int64_t timeout_ms);

  bool begun() const { return deadline_ms_ != 0; }
  // The coordinator lets the run end with a last cut.
  bool taken() const { return taken_; }
  // Whether it has begun and the time is over.
  bool IsLate() const;
  // Why there is no last cut. REQUIRES: IsLate()
  std::string LateText() const;
  // What the request waits for: "the coordinator does not answer", or why it has refused.
  const std::string& waits_for() const { return waits_for_; }

 private:
  double stop_seconds_ = 0;
  int64_t deadline_ms_ = 0;
  bool taken_ = false;
  std::string waits_for_ = "the coordinator does not answer";
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_STOP_REQUEST_H_
