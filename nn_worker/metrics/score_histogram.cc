#include "nn_worker/metrics/score_histogram.h"

#include <algorithm>
#include <limits>

namespace satrap {
namespace {

constexpr int kBins = 8192;
constexpr float kBinsPerUnit = 256;
constexpr float kLowest = -16;

int BinOf(float logit) {
  const float bin = (std::clamp(logit, kLowest, -kLowest) - kLowest) * kBinsPerUnit;
  return std::min(kBins - 1, static_cast<int>(bin));
}

}  // namespace

ScoreHistogram::ScoreHistogram() : positive_(kBins, 0), negative_(kBins, 0) {}

void ScoreHistogram::Add(float logit, float label, double weight) {
  (label > 0.5f ? positive_ : negative_)[BinOf(logit)] += weight;
}

void ScoreHistogram::Merge(const ScoreHistogram& other) {
  for (int bin = 0; bin < kBins; ++bin) {
    positive_[bin] += other.positive_[bin];
    negative_[bin] += other.negative_[bin];
  }
}

void ScoreHistogram::Clear() {
  std::fill(positive_.begin(), positive_.end(), 0);
  std::fill(negative_.begin(), negative_.end(), 0);
}

MetricValue ScoreHistogram::Auc() const {
  double won = 0, positives = 0, negatives = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    won += positive_[bin] * (negatives + negative_[bin] / 2);
    positives += positive_[bin];
    negatives += negative_[bin];
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (positives == 0) return {nan, "no positive sample"};
  if (negatives == 0) return {nan, "no negative sample"};
  return {won / (positives * negatives), ""};
}

}  // namespace satrap
