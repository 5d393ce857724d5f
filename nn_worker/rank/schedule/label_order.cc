#include "nn_worker/rank/schedule/label_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace satrap {
namespace {

void JoinPairs(LabelWindows* windows) {
  const int pairs = windows->samples_size() / 2;
  for (int i = 0; i < pairs; ++i) {
    windows->set_samples(i, windows->samples(2 * i) + windows->samples(2 * i + 1));
    windows->set_positives(i, windows->positives(2 * i) + windows->positives(2 * i + 1));
  }
  windows->mutable_samples()->Truncate(pairs);
  windows->mutable_positives()->Truncate(pairs);
  windows->set_window_steps(2 * windows->window_steps());
}

}  // namespace

void LabelOrder::AddStep(uint64_t samples, double positives) {
  if (samples == 0) return;
  if (state_.samples().empty() || state_.open_steps() == state_.window_steps()) {
    if (state_.samples_size() == kMostWindows) JoinPairs(&state_);
    state_.set_window_steps(std::max<uint64_t>(state_.window_steps(), 1));
    state_.set_open_steps(0);
    state_.add_samples(0);
    state_.add_positives(0);
  }
  const int last = state_.samples_size() - 1;
  state_.set_open_steps(state_.open_steps() + 1);
  state_.set_samples(last, state_.samples(last) + samples);
  state_.set_positives(last, state_.positives(last) + positives);
}

absl::optional<double> LabelOrder::Rate() const {
  const double samples = std::accumulate(state_.samples().begin(), state_.samples().end(), 0.0);
  if (samples == 0) return absl::nullopt;
  return std::accumulate(state_.positives().begin(), state_.positives().end(), 0.0) / samples;
}

absl::optional<MovingLabelRate> LabelOrder::FindMovingRate() const {
  const int windows = state_.samples_size();
  if (windows < kMostWindows / 2) return absl::nullopt;
  const double rate = Rate().value_or(0);
  if (!(rate > 0 && rate < 1)) return absl::nullopt;
  MovingLabelRate moving;
  moving.set_windows(static_cast<uint32_t>(windows));
  moving.set_lowest(1);
  double chi_square = 0;
  double all = 0;
  for (int i = 0; i < windows; ++i) {
    const auto samples = static_cast<double>(state_.samples(i));
    const double of_window = state_.positives(i) / samples;
    chi_square += samples * (of_window - rate) * (of_window - rate) / (rate * (1 - rate));
    all += samples;
    moving.set_lowest(std::min(moving.lowest(), of_window));
    moving.set_highest(std::max(moving.highest(), of_window));
  }
  const double excess = chi_square - (windows - 1);
  moving.set_deviations(excess / std::sqrt(2.0 * (windows - 1)));
  moving.set_share(excess / all);
  if (moving.deviations() <= kDeviations || moving.share() <= kShare) return absl::nullopt;
  return moving;
}

}  // namespace satrap
