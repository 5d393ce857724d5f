#include "common/numeric/exact_sum.h"

#include <cmath>
#include <cstddef>

namespace satrap {
namespace {

struct TwoDoubles {
  double rounded;
  double error;  // rounded + error is the exact sum
};

// REQUIRES: |large| >= |small|
TwoDoubles SumOf(double large, double small) {
  const double rounded = large + small;
  return {rounded, small - (rounded - large)};
}

}  // namespace

void ExactSum::Add(double value) {
  if (!std::isfinite(value)) {
    not_finite_ += value;
    return;
  }
  size_t kept = 0;
  for (const double part : parts_) {
    const bool value_is_larger = std::abs(value) >= std::abs(part);
    const TwoDoubles sum = value_is_larger ? SumOf(value, part) : SumOf(part, value);
    if (sum.error != 0) parts_[kept++] = sum.error;
    value = sum.rounded;
  }
  parts_.resize(kept);
  if (value != 0) parts_.push_back(value);
}

double ExactSum::Rounded() const {
  if (not_finite_ != 0) return not_finite_;
  if (parts_.empty()) return 0;
  size_t left = parts_.size() - 1;
  TwoDoubles sum = {parts_[left], 0};
  while (left > 0 && sum.error == 0) sum = SumOf(sum.rounded, parts_[--left]);
  // A sum exactly halfway between two doubles was rounded to even. If the parts that are left have
  // the same sign as the error, the exact sum is beyond the middle.
  if (left > 0 && (sum.error > 0) == (parts_[left - 1] > 0)) {
    const double twice = 2 * sum.error;
    const double next = sum.rounded + twice;
    if (next - sum.rounded == twice) return next;
  }
  return sum.rounded;
}

absl::InlinedVector<double, 4> ExactSum::Terms() const {
  if (not_finite_ != 0) return {not_finite_};
  if (parts_.empty()) return {0};
  return {parts_.rbegin(), parts_.rend()};
}

}  // namespace satrap
