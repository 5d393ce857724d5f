// Measures how long a device needs for an operation. The operation is enqueued many times back to
// back, and the host waits only once, for an event at the end. So the host's time for a launch
// matters only if it is longer than the operation's own time.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_BACKEND_BENCHMARK_TIMING_H_
#define SATRAP_NN_WORKER_BACKEND_BENCHMARK_TIMING_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace satrap {

struct TimingOptions {
  // The minimum length of a measurement. The operation is enqueued often enough to reach it, but no
  // more often than a device's queue can hold, because the host would then wait for room.
  double least_seconds = 0.02;
  int most_repeats = 256;
  int rounds = 3;  // of which the fastest counts
};

struct Timing {
  double seconds = 0;       // of one operation
  double host_seconds = 0;  // that the host took to enqueue one operation
};

// `enqueue` enqueues the operation once; `await` waits until everything enqueued has run. The
// operation is run a few times before it is measured. Returns the error of `await`.
absl::StatusOr<Timing> TimeOperation(const TimingOptions& options,
                                     absl::FunctionRef<void()> enqueue,
                                     absl::FunctionRef<absl::Status()> await);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BENCHMARK_TIMING_H_
