// An ExactSum adds doubles without rounding, so the result depends neither on their order nor on
// how they were divided among several ExactSums. It keeps the sum as a few doubles that do not
// overlap (Shewchuk, "Adaptive Precision Floating-Point Arithmetic", 1997).
//
// Not thread-safe.

#ifndef SATRAP_COMMON_NUMERIC_EXACT_SUM_H_
#define SATRAP_COMMON_NUMERIC_EXACT_SUM_H_

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace satrap {

class ExactSum {
 public:
  // REQUIRES: the sum stays below the largest double, and no difference that the addition computes
  // falls below the smallest normal double. Squares of floats are far from both limits.
  void Add(double value);

  // The sum, rounded once. Inf or NaN if an Inf or NaN was added.
  double Rounded() const;
  // Doubles whose exact sum this is, the largest first; at least one. Adding them to another
  // ExactSum has the same result as adding the original values.
  absl::InlinedVector<double, 4> Terms() const;

 private:
  absl::InlinedVector<double, 4> parts_;  // ascending, without zeros
  double not_finite_ = 0;                 // the sum of the values that are not finite
};

}  // namespace satrap

#endif  // SATRAP_COMMON_NUMERIC_EXACT_SUM_H_
