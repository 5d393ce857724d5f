// The time of a monotonic clock, for deadlines, pauses and durations. The clock's zero is arbitrary
// and differs between machines, so such a time is never sent to another process or stored.
//
// Engines must not use this clock. They use the clock of their Executor (executor.h), which the
// simulation replaces. Thread-safe.

#ifndef SATRAP_COMMON_THREAD_CLOCK_H_
#define SATRAP_COMMON_THREAD_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace satrap {

// Microseconds, rounded down.
inline int64_t MonotonicUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Milliseconds, rounded down.
inline int64_t MonotonicMs() { return MonotonicUs() / 1000; }

inline double MonotonicSeconds() { return static_cast<double>(MonotonicUs()) * 1e-6; }

}  // namespace satrap

#endif  // SATRAP_COMMON_THREAD_CLOCK_H_
