// Sets flush-to-zero and denormals-are-zero. In a thread with this mode an operation whose result
// would be subnormal gives zero, and a subnormal operand counts as zero of the same sign.
//
// Without this mode a decaying average (such as Adam's first moment of a dead ReLU unit) would stay
// subnormal for ever, and many x86 processors take a hundred cycles or more for each operation on
// such a value.
//
// The mode belongs to a thread and changes results, so every thread that computes on model values
// must have it: results would otherwise depend on which thread ran an operation. RunRole sets it in
// the main thread of every role; ThreadPoolExecutor, ForkJoinPool and WorkThread set it in their
// threads.

#ifndef SATRAP_COMMON_NUMERIC_DENORMALS_H_
#define SATRAP_COMMON_NUMERIC_DENORMALS_H_

#include <xmmintrin.h>

namespace satrap {

// Flush-to-zero (bit 15) and denormals-are-zero (bit 6) of the register MXCSR.
inline constexpr unsigned int kFlushToZeroBits = 0x8040;

// Sets the mode of the calling thread for the rest of the thread's life. On Linux, threads that it
// starts inherit the mode, but code that starts threads to compute should not rely on that.
inline void SetFlushToZero() { _mm_setcsr(_mm_getcsr() | kFlushToZeroBits); }

// Sets (`on`) or clears the mode of the calling thread, and restores the previous mode at the end
// of the scope. REQUIRES: destroyed in the thread that made it
class ScopedFlushToZero {
 public:
  explicit ScopedFlushToZero(bool on = true) : before_(_mm_getcsr()) {
    Set(on ? before_ | kFlushToZeroBits : before_ & ~kFlushToZeroBits);
  }
  ~ScopedFlushToZero() { Set((_mm_getcsr() & ~kFlushToZeroBits) | (before_ & kFlushToZeroBits)); }
  ScopedFlushToZero(const ScopedFlushToZero&) = delete;
  ScopedFlushToZero& operator=(const ScopedFlushToZero&) = delete;

 private:
  // Writing the register stalls the pipeline, but reading it does not.
  static void Set(unsigned int mode) {
    if (_mm_getcsr() != mode) _mm_setcsr(mode);
  }

  const unsigned int before_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_NUMERIC_DENORMALS_H_
