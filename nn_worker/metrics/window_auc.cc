#include "nn_worker/metrics/window_auc.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"

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

WindowAuc::Histogram::Histogram() : positive(kBins, 0), negative(kBins, 0) {}

WindowAuc::WindowAuc(int64_t window_samples) : window_samples_(window_samples) {
  CHECK(window_samples > 0);
}

void WindowAuc::Add(absl::Span<const float> logits, absl::Span<const float> labels,
                    absl::Span<const float> weights, absl::Span<const float> mask) {
  CHECK(labels.size() == logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if ((!mask.empty() && mask[i] == 0) || std::isnan(logits[i])) continue;
    // Samples cannot be taken out of a histogram one by one, so the older half goes as a whole.
    if (current_.samples >= window_samples_) {
      std::swap(current_, previous_);
      current_ = Histogram();
    }
    const double weight = weights.empty() ? 1.0 : weights[i];
    (labels[i] > 0.5f ? current_.positive : current_.negative)[BinOf(logits[i])] += weight;
    ++current_.samples;
  }
}

MetricValue WindowAuc::Compute() const {
  double won = 0, positives = 0, negatives = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    const double positive = current_.positive[bin] + previous_.positive[bin];
    const double negative = current_.negative[bin] + previous_.negative[bin];
    won += positive * (negatives + negative / 2);
    positives += positive;
    negatives += negative;
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (positives == 0) return {nan, "no positive sample"};
  if (negatives == 0) return {nan, "no negative sample"};
  return {won / (positives * negatives), ""};
}

}  // namespace satrap
