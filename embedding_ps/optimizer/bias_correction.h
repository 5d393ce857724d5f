// The bias correction of a decaying average that began at 0: 1 - beta^t after t steps.
//
// The corrections of the first 32,768 steps are kept in a table, because computing a power for each
// row would cost more than the rest of its step. In f32 the correction for the usual beta of .999
// becomes 1 after some 17,300 steps; from then on no power is computed.
//
// Thread-safe: const.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_BIAS_CORRECTION_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_BIAS_CORRECTION_H_

#include <cmath>
#include <cstddef>
#include <vector>

namespace satrap {

class BiasCorrection {
 public:
  // REQUIRES: 0 <= beta < 1
  explicit BiasCorrection(float beta) : beta_(beta) {
    for (size_t t = 0; t < kTabled; ++t) {
      tabled_.push_back(Compute(static_cast<float>(t)));
      // All later corrections are also 1.
      if (tabled_.back() == 1) break;
    }
  }

  // The correction after t steps. REQUIRES: t >= 1, a whole number
  float operator()(float t) const {
    if (t < static_cast<float>(tabled_.size())) return tabled_[static_cast<size_t>(t)];
    return tabled_.back() == 1 ? 1 : Compute(t);
  }

 private:
  static constexpr size_t kTabled = 32768;

  // Computed in double: for a beta of .999, 1 - beta^t starts near .001, and a float would lose
  // three digits.
  float Compute(float t) const {
    return static_cast<float>(1 - std::pow(static_cast<double>(beta_), static_cast<double>(t)));
  }

  const float beta_;
  std::vector<float> tabled_;  // of t = 0, 1, ...
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_BIAS_CORRECTION_H_
