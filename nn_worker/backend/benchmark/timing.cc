#include "nn_worker/backend/benchmark/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "common/base/status_macros.h"

namespace satrap {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

absl::StatusOr<Timing> Measure(int repeats, absl::FunctionRef<void()> enqueue,
                               absl::FunctionRef<absl::Status()> await) {
  Timing timing;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < repeats; ++i) enqueue();
  timing.host_seconds = SecondsSince(begin) / repeats;
  RETURN_IF_ERROR(await());
  timing.seconds = SecondsSince(begin) / repeats;
  return timing;
}

}  // namespace

absl::StatusOr<Timing> TimeOperation(const TimingOptions& options,
                                     absl::FunctionRef<void()> enqueue,
                                     absl::FunctionRef<absl::Status()> await) {
  // The first run copies lists of tensors and loads the kernel; the second shows how long one run
  // takes.
  RETURN_IF_ERROR(Measure(1, enqueue, await).status());
  ASSIGN_OR_RETURN(Timing best, Measure(1, enqueue, await));
  const double wanted = std::ceil(options.least_seconds / std::max(best.seconds, 1e-9));
  const int repeats = std::max(1, static_cast<int>(std::min<double>(wanted, options.most_repeats)));
  // The time of the single run is dropped if there are several repeats: it is the slowest, because
  // it includes the wait for its event.
  if (repeats > 1) best.seconds = HUGE_VAL;
  for (int round = 0; round < options.rounds; ++round) {
    ASSIGN_OR_RETURN(const Timing timing, Measure(repeats, enqueue, await));
    if (timing.seconds < best.seconds) best = timing;
  }
  return best;
}

}  // namespace satrap
