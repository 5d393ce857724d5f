// A ForkJoinPool runs the parts of one operation on several threads, including the caller's.
// Threads claim parts as they become free, so a result must not depend on which thread runs a part.
// A helper that wakes late delays nobody, because the other threads have done its share.
//
// A helper without work spins for a few microseconds and then sleeps, so that other roles on the
// machine get the core.
//
// Parts run with subnormal numbers flushed to zero (common/numeric/denormals.h), also in the
// caller's thread.
//
// Thread-compatible: one caller at a time.

#ifndef SATRAP_COMMON_THREAD_FORK_JOIN_POOL_H_
#define SATRAP_COMMON_THREAD_FORK_JOIN_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace satrap {

class ForkJoinPool {
 public:
  // `num_threads` counts the caller. REQUIRES: num_threads >= 1
  explicit ForkJoinPool(int num_threads);
  ~ForkJoinPool();

  int num_threads() const;

  // Runs part(i, thread) once for each i in [0, parts); returns when all parts have returned.
  // `thread` is in [0, num_threads). Two parts that run at the same time never have the same
  // `thread`, so it may index scratch memory.
  void Run(int64_t parts, absl::FunctionRef<void(int64_t part, int thread)> part);

 private:
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_THREAD_FORK_JOIN_POOL_H_
