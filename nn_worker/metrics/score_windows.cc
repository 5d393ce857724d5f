#include "nn_worker/metrics/score_windows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/base/check.h"

namespace satrap {
namespace {

// The median of a part's times is approximated by the median of at most this many of them, evenly
// spaced.
constexpr size_t kTimes = 65;

int64_t MedianOf(absl::Span<const int64_t> times) {
  std::array<int64_t, kTimes> some;
  const size_t n = std::min(times.size(), kTimes);
  for (size_t i = 0; i < n; ++i) some[i] = times[i * times.size() / n];
  std::nth_element(some.begin(), some.begin() + n / 2, some.begin() + n);
  return some[n / 2];
}

// Times before 1970 are negative.
int64_t FloorOfQuotient(int64_t dividend, int64_t divisor) {
  const int64_t quotient = dividend / divisor;
  return dividend % divisor < 0 ? quotient - 1 : quotient;
}

}  // namespace

ScoreWindows::ScoreWindows(const EvaluationConfig& config, uint64_t samples, Sink sink)
    : window_samples_(static_cast<uint64_t>(config.window_samples())),
      window_ms_(config.window_data_seconds() > 0
                     ? std::max<int64_t>(1, std::llround(config.window_data_seconds() * 1000))
                     : 0),
      sink_(std::move(sink)),
      samples_(samples),
      first_sample_(samples) {}

void ScoreWindows::AddStep(uint64_t steps, uint64_t samples, const Part& part) {
  CHECK(part.labels.size() == part.logits.size());
  const bool in_data_time = window_ms_ > 0 && !part.times.empty();
  if (in_data_time) MoveDataWindow(steps, part);
  AddScores(part, in_data_time);
  samples_ += samples;
  if (window_samples_ > 0 && samples_ / window_samples_ > first_sample_ / window_samples_) {
    ScoreWindow ended;
    ended.begin = static_cast<int64_t>(first_sample_);
    ended.end = static_cast<int64_t>(samples_);
    End(steps, &by_samples_, ended);
    first_sample_ = samples_;
  }
}

void ScoreWindows::MoveDataWindow(uint64_t steps, const Part& part) {
  const int64_t window = FloorOfQuotient(MedianOf(part.times), window_ms_);
  if (!data_window_.has_value()) data_window_ = window;
  older_in_a_row_ = window < *data_window_ ? older_in_a_row_ + 1 : 0;
  const bool goes_back = part.epoch > epoch_ || older_in_a_row_ > kOlderInARow;
  epoch_ = std::max(epoch_, part.epoch);
  if (window == *data_window_ || (window < *data_window_ && !goes_back)) return;
  ScoreWindow ended;
  ended.by_data_time = true;
  ended.begin = *data_window_ * window_ms_;
  ended.end = ended.begin + window_ms_;
  End(steps - 1, &by_data_time_, ended);
  data_window_ = window;
  older_in_a_row_ = 0;
}

// Computes exponentials and logarithms only once for both kinds of windows.
void ScoreWindows::AddScores(const Part& part, bool in_data_time) {
  const bool in_samples = window_samples_ > 0;
  LogLoss losses;
  for (size_t i = 0; i < part.logits.size(); ++i) {
    const float logit = part.logits[i];
    if ((!part.mask.empty() && part.mask[i] == 0) || !std::isfinite(logit)) continue;
    const double weight = part.weights.empty() ? 1.0 : part.weights[i];
    losses.Add(logit, part.labels[i], weight);
    if (in_samples) by_samples_.histogram.Add(logit, part.labels[i], weight);
    if (in_data_time) by_data_time_.histogram.Add(logit, part.labels[i], weight);
  }
  if (in_samples) by_samples_.losses.Merge(losses);
  if (in_data_time) by_data_time_.losses.Merge(losses);
  double sums[LogLoss::kSums];
  losses.Sums(absl::MakeSpan(sums));
  tail_.Add(static_cast<uint64_t>(sums[0]), sums[2], sums[4]);
}

void ScoreWindows::End(uint64_t steps, Scores* scores, ScoreWindow window) {
  window.steps = steps;
  window.samples = static_cast<uint64_t>(scores->losses.samples());
  window.auc = scores->histogram.Auc().value;
  window.logloss = scores->losses.LogLossValue().value;
  window.calibration = scores->losses.Calibration().value;
  scores->histogram.Clear();
  scores->losses = LogLoss();
  sink_(window);
}

}  // namespace satrap
