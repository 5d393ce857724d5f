// NumericTransform: the value with which a numeric column enters the dense block. NumericToId: the
// id that a feature makes of a numeric column.
//
// Thread-safe: immutable objects.

#ifndef SATRAP_DATA_LOADER_TRANSFORM_NUMERIC_TRANSFORM_H_
#define SATRAP_DATA_LOADER_TRANSFORM_NUMERIC_TRANSFORM_H_

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
    if (transform_ == NumericConfig::LOG1P) return x > 0 ? std::log1p(x) : 0.0f;
    return (x - offset_) * scale_;
  }

 private:
  const NumericConfig::Transform transform_;
  const float missing_value_;
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
