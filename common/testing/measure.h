// Clocks, and a median, for programs that measure something.
//
// Thread-safe: functions without state.

#ifndef SATRAP_COMMON_TESTING_MEASURE_H_
#define SATRAP_COMMON_TESTING_MEASURE_H_

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "common/base/check.h"

namespace satrap {

// Seconds since some fixed but unspecified moment.
inline double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
template <typename Work>
double WallSecondsOf(Work work) {
  const double start = WallSeconds();
  work();
  return WallSeconds() - start;
}
// The time of the shortest of `runs` runs, after one extra run to warm up.
template <typename Work>
double BestSeconds(int runs, Work work) {
  work();
  double best = 1e9;
  for (int run = 0; run < runs; ++run) best = std::min(best, WallSecondsOf(work));
  return best;
}

inline double SecondsOfClock(clockid_t clock) {
  timespec now;
  CHECK(clock_gettime(clock, &now) == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
// Processor time of all threads of the process. On a shared machine it is more reliable than
// elapsed time.
inline double ProcessCpuSeconds() { return SecondsOfClock(CLOCK_PROCESS_CPUTIME_ID); }
// Processor time of this thread, so that other processes on the core do not count.
inline double ThreadCpuSeconds() { return SecondsOfClock(CLOCK_THREAD_CPUTIME_ID); }
// Processor time of all threads of the process according to getrusage, which includes the kernel's
// work for the process.
inline double ProcessUsageSeconds() {
  rusage usage;
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// The median; of an even number of values, the upper of the two middle ones. REQUIRES: there are
// values
inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace satrap

#endif  // SATRAP_COMMON_TESTING_MEASURE_H_
