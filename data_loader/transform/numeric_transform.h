// NumericTransform computes the value with which a numeric column enters the dense block;
// NumericToId computes the id that a feature makes of a numeric column.
//
// Thread-safe: immutable objects.

#ifndef SATRAP_DATA_LOADER_TRANSFORM_NUMERIC_TRANSFORM_H_
#define SATRAP_DATA_LOADER_TRANSFORM_NUMERIC_TRANSFORM_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "proto/data.pb.h"

namespace satrap {

class NumericTransform {
 public:
  // REQUIRES: valid (max > min, stddev > 0)
  explicit NumericTransform(const NumericConfig& config);

  // `x` may be kMissingNumeric.
  float Apply(float x) const {
    if (std::isnan(x)) return missing_value_;
    const float value = Transformed(x);
    if (!has_clamp_) return value;
    return std::min(std::max(value, -clamp_), clamp_);
  }

  // The value without the clamp. Never decreases with `x`. REQUIRES: `x` is not missing
  float Transformed(float x) const {
    if (transform_ == NumericConfig::LOG1P) return x > 0 ? std::log1p(x) : 0.0f;
    return (x - offset_) * scale_;
  }
  bool has_clamp() const { return has_clamp_; }
  // REQUIRES: `x` is not missing
  bool Clamps(float x) const { return has_clamp_ && std::fabs(Transformed(x)) > clamp_; }

 private:
  const NumericConfig::Transform transform_;
  const float missing_value_;
  const bool has_clamp_;
  const float clamp_;
  float offset_ = 0;
  float scale_ = 1;
};

class NumericToId {
 public:
  // REQUIRES: config.from_numeric is set
  explicit NumericToId(const FeatureConfig& config);

  // REQUIRES: `x` is not missing
  uint64_t Apply(float x) const;

 private:
  const bool criteo_x4_;
  const std::vector<float> boundaries_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_TRANSFORM_NUMERIC_TRANSFORM_H_
