// Keeps a producer at a rate: message or line n is due n / rate after the start. So if the broker
// pauses, the producer catches up afterwards.
//
// Thread-compatible.

#ifndef SATRAP_DATA_LOADER_KAFKA_SEND_PACE_H_
#define SATRAP_DATA_LOADER_KAFKA_SEND_PACE_H_

#include <chrono>
#include <cstdint>
#include <thread>

#include "common/thread/clock.h"

namespace satrap {

class SendPace {
 public:
  // Starts now. If `per_second` is not positive, WaitFor never waits.
  explicit SendPace(double per_second) : per_second_(per_second) {}

  // The microseconds until number `n`, counted from 0, is due; 0 or negative if it is due already.
  int64_t UsUntil(uint64_t n, int64_t now_us) const {
    if (per_second_ <= 0) return 0;
    const double due_us = static_cast<double>(n) / per_second_ * 1e6;
    return begin_us_ + static_cast<int64_t>(due_us) - now_us;
  }
  // Blocks until number `n` is due.
  void WaitFor(uint64_t n) const {
    const int64_t wait_us = UsUntil(n, MonotonicUs());
    if (wait_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(wait_us));
  }
  int64_t begin_us() const { return begin_us_; }

 private:
  const double per_second_;
  const int64_t begin_us_ = MonotonicUs();
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_SEND_PACE_H_
