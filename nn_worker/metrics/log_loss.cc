#include "nn_worker/metrics/log_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"

namespace satrap {
namespace {

MetricValue Undefined(const char* reason) {
  return {std::numeric_limits<double>::quiet_NaN(), reason};
}

}  // namespace

// The smaller summand loses its low bits in the sum. Subtracting the larger summand from the sum
// again shows which bits were lost.
void CompensatedSum::Add(double value) {
  const double sum = sum_ + value;
  if (std::abs(sum_) >= std::abs(value)) {
    error_ += (sum_ - sum) + value;
  } else {
    error_ += (value - sum) + sum_;
  }
  sum_ = sum;
}

void LogLoss::Add(float logit, float label, double weight) {
  const double z = logit;
  const double y = label;
  sums_[0].Add(1);
  sums_[1].Add(weight);
  sums_[2].Add(weight * y);
  sums_[3].Add(weight * (std::max(z, 0.0) - z * y + std::log1p(std::exp(-std::abs(z)))));
  sums_[4].Add(weight / (1 + std::exp(-z)));
}

void LogLoss::Merge(const LogLoss& other) {
  for (int i = 0; i < kSums; ++i) sums_[i].Add(other.sums_[i].value());
}

void LogLoss::Sums(absl::Span<double> sums) const {
  CHECK(sums.size() == kSums);
  for (int i = 0; i < kSums; ++i) sums[i] = sums_[i].value();
}

void LogLoss::SetSums(absl::Span<const double> sums) {
  CHECK(sums.size() == kSums);
  for (int i = 0; i < kSums; ++i) {
    sums_[i] = CompensatedSum();
    sums_[i].Add(sums[i]);
  }
}

MetricValue LogLoss::LogLossValue() const {
  if (weight() == 0) return Undefined("no sample");
  return {sums_[3].value() / weight(), ""};
}

MetricValue LogLoss::NormalisedEntropy() const {
  if (weight() == 0) return Undefined("no sample");
  const double rate = sums_[2].value() / weight();
  if (rate <= 0) return Undefined("no positive sample");
  if (rate >= 1) return Undefined("no negative sample");
  const double entropy = -(rate * std::log(rate) + (1 - rate) * std::log(1 - rate));
  return {LogLossValue().value / entropy, ""};
}

MetricValue LogLoss::Calibration() const {
  if (sums_[2].value() == 0) return Undefined("no positive sample");
  return {sums_[4].value() / sums_[2].value(), ""};
}

}  // namespace satrap
