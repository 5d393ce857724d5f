// The time of day, for texts that people read and for comparing processes of one machine. This time
// may jump, so deadlines and durations use clock.h.
//
// Engines must not call it: they are given a clock, which the simulation replaces. Thread-safe.

#ifndef SATRAP_COMMON_THREAD_WALL_CLOCK_H_
#define SATRAP_COMMON_THREAD_WALL_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace satrap {

// Milliseconds since 1970-01-01 00:00:00 UTC, rounded down.
inline int64_t UnixMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace satrap

#endif  // SATRAP_COMMON_THREAD_WALL_CLOCK_H_
