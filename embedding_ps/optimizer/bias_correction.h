// The bias correction of a decaying average that began at 0: 1 - beta^t after t steps.
//
// The corrections of the first 32,768 steps are kept in a table, because computing a power for each
// row would cost more than the rest of its step. In f32 the correction for the usual beta of .999
// becomes 1 after some 17,300 steps; from then on no power is computed. All objects of one beta
// share a table of at most 128 KiB, which stays until the process ends: a job has many segments and
// few betas, and thousands of powers for each segment would delay the start of a process.
//
// Thread-safe: const.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_BIAS_CORRECTION_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_BIAS_CORRECTION_H_

#include <cmath>
#include <cstddef>

#include "absl/types/span.h"

namespace satrap {

class BiasCorrection {
 public:
  // REQUIRES: 0 <= beta < 1
  explicit BiasCorrection(float beta) : beta_(beta), tabled_(TableOf(beta)) {}

  // The correction after t steps. REQUIRES: t >= 1, a whole number
  float operator()(float t) const {
    if (t < static_cast<float>(tabled_.size())) return tabled_[static_cast<size_t>(t)];
    return tabled_.back() == 1 ? 1 : Compute(beta_, t);
  }

 private:
  // Computed in double: for a beta of .999, 1 - beta^t starts near .001, and a float would lose
  // three digits.
  static float Compute(float beta, float t) {
    return static_cast<float>(1 - std::pow(static_cast<double>(beta), static_cast<double>(t)));
  }
  // The shared table: the corrections of t = 0, 1, ... It ends early if all later ones are 1.
  static absl::Span<const float> TableOf(float beta);

  const float beta_;
  const absl::Span<const float> tabled_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_BIAS_CORRECTION_H_
