#include "data_loader/transform/numeric_transform.h"

#include <algorithm>

#include "common/base/check.h"

namespace satrap {

NumericTransform::NumericTransform(const NumericConfig& config)
    : transform_(config.transform()),
      missing_value_(config.missing_value()),
      has_clamp_(config.has_clamp()),
      clamp_(config.clamp()) {
  switch (transform_) {
    case NumericConfig::IDENTITY:
    case NumericConfig::LOG1P:
      break;
    case NumericConfig::MIN_MAX:
      offset_ = config.min();
      scale_ = 1.0f / (config.max() - config.min());
      break;
    case NumericConfig::STANDARDISE:
      offset_ = config.mean();
      scale_ = 1.0f / config.stddev();
      break;
  }
}

NumericToId::NumericToId(const FeatureConfig& config)
    : criteo_x4_(config.has_criteo_x4()),
      boundaries_(config.bucketize().boundaries().begin(), config.bucketize().boundaries().end()) {
  CHECK(config.from_numeric_case() != FeatureConfig::FROM_NUMERIC_NOT_SET) << config.name();
}

uint64_t NumericToId::Apply(float x) const {
  if (!criteo_x4_) {
    const auto above = std::upper_bound(boundaries_.begin(), boundaries_.end(), x);
    return static_cast<uint64_t>(above - boundaries_.begin());
  }
  // This is how the BARS benchmark (Criteo_x4) discretises Criteo's integers. The computation is in
  // f64, as in BARS: otherwise values at the edge of a bucket could differ.
  const double value = static_cast<double>(x);
  if (value > 2) {
    const double log = std::log(value);
    return static_cast<uint64_t>(std::floor(log * log));
  }
  // Round towards zero. A negative number becomes the u64 with the same bits. Without the lower
  // limit the conversion to an integer could be undefined.
  return static_cast<uint64_t>(static_cast<int64_t>(std::max(value, -9.0e18)));
}

}  // namespace satrap
