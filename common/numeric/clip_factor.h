// The factor by which all gradients of a step are multiplied if JobConfig.gradient_clip_norm is
// set.

#ifndef SATRAP_COMMON_NUMERIC_CLIP_FACTOR_H_
#define SATRAP_COMMON_NUMERIC_CLIP_FACTOR_H_

#include <cmath>

namespace satrap {

// min(1, limit / sqrt(squares)): gradients whose squares add up to `squares` get a norm of at most
// `limit`. Embedding workers and ranks compute the factor from the same sum, so they get the same
// bits. If the sum is NaN, the factor is 1, so that such gradients stay visible. REQUIRES: limit >
// 0
inline float ClipFactor(float limit, double squares) {
  const double norm = std::sqrt(squares);
  return norm > limit ? static_cast<float>(limit / norm) : 1.0f;
}

}  // namespace satrap

#endif  // SATRAP_COMMON_NUMERIC_CLIP_FACTOR_H_
