#include "deploy/report/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "deploy/report/run_report.h"

namespace satrap {
namespace {

constexpr int64_t kTerminalPeriodMs = 250;
constexpr int64_t kPlainPeriodMs = 5000;
constexpr int kBarWidth = 20;

std::string Phase(const StatusAnswer& status) {
  switch (status.state()) {
    case STARTING:
      return "starting";
    case RUNNING:
      return status.train().has_phase() ? status.train().phase() : "starting";
    case FINISHED:
      return "finishing";
    case FAILED:
    case STOPPED:
      return "stopping";
    case RESTARTING:
      return "restarting";
  }
  return "starting";
}

std::string Bar(double fraction) {
  if (fraction < 0) return "";
  const int full = static_cast<int>(fraction * kBarWidth);
  return absl::StrCat("[", std::string(full, '#'), std::string(kBarWidth - full, '.'),
                      absl::StrFormat("] %3.0f%% ", fraction * 100));
}

}  // namespace

std::string ProgressText(const StatusAnswer& status) {
  const TrainProgress& train = status.train();
  std::string text = Phase(status);
  if (status.state() != RUNNING || train.step() == 0) return text;
  // A stream without end has no epochs, and no number of samples to compare with.
  if (train.endless()) {
    absl::StrAppend(&text, "  step ", CountText(train.step()), " | ",
                    Counted(train.samples(), "sample"));
  } else {
    absl::StrAppendFormat(&text, "  epoch %d  step %s", train.epoch() + 1, CountText(train.step()));
  }
  if (train.samples_per_second() > 0) {
    absl::StrAppend(&text, " | ", CountText(static_cast<uint64_t>(train.samples_per_second())),
                    " samples/s");
  }
  if (train.has_window_loss()) absl::StrAppendFormat(&text, " | loss %.4f", train.window_loss());
  if (train.has_window_auc() && std::isfinite(train.window_auc())) {
    absl::StrAppendFormat(&text, " | auc %.4f", train.window_auc());
  }
  if (train.has_staleness_max()) {
    absl::StrAppendFormat(&text, " | staleness %.1f (max %d)", train.staleness_mean(),
                          train.staleness_max());
  }
  if (const GradientNorms& norms = train.gradient_norms(); norms.steps() > 0) {
    absl::StrAppendFormat(&text, " | norm %.4g (mean %.4g, %s of %s clipped)", norms.last(),
                          MeanNorm(norms), CountText(norms.clipped_steps()),
                          Counted(norms.steps(), "step"));
  }
  if (train.has_learning_rate_factor()) {
    absl::StrAppendFormat(&text, " | rates x %g (%s)", train.learning_rate_factor(),
                          Counted(train.reductions(), "reduction"));
  }
  if (train.has_last_valid()) {
    const MetricValues& valid = train.last_valid();
    if (valid.has_auc()) {
      absl::StrAppendFormat(&text, " | valid auc %.4f", valid.auc());
    } else if (valid.has_rmse()) {
      absl::StrAppendFormat(&text, " | valid rmse %.4f", valid.rmse());
    } else if (valid.has_logloss()) {
      absl::StrAppendFormat(&text, " | valid logloss %.4f", valid.logloss());
    }
  }
  if (status.topics().has_lag_messages()) {
    absl::StrAppend(&text, " | lag ", CountText(status.topics().lag_messages()));
    if (status.topics().has_lag_seconds()) {
      absl::StrAppendFormat(&text, " (%.1f s)", status.topics().lag_seconds());
    }
  }
  if (status.topics().has_watermark_ms()) {
    absl::StrAppend(&text, " | watermark ", UtcText(status.topics().watermark_ms()));
  }
  if (!train.endless() && train.has_seconds_left() && train.seconds_left() >= 0) {
    absl::StrAppend(&text, " | ", DurationText(train.seconds_left()), " left");
  }
  return text;
}

double ProgressFraction(const StatusAnswer& status) {
  const TrainProgress& train = status.train();
  if (train.expected_samples() == 0) return -1;
  return std::clamp(
      static_cast<double>(train.samples()) / static_cast<double>(train.expected_samples()), 0.0,
      1.0);
}

void ProgressLine::Show(const StatusAnswer& status, int64_t now_ms) {
  const std::string phase = Phase(status);
  if (now_ms < next_ms_ && (is_terminal_ || phase == last_phase_)) return;
  last_phase_ = phase;
  next_ms_ = now_ms + (is_terminal_ ? kTerminalPeriodMs : kPlainPeriodMs);
  if (is_terminal_) {
    // Return to the first column, and erase the rest of a longer previous text.
    Write(absl::StrCat("\r", Bar(ProgressFraction(status)), ProgressText(status), "\x1b[K"));
    line_open_ = true;
  } else {
    Write(absl::StrCat(ProgressText(status), "\n"));
  }
}

void ProgressLine::End() {
  if (line_open_) Write("\n");
  line_open_ = false;
}

void ProgressLine::Write(const std::string& text) {
  // A closed stderr must not end the run: progress is lost, and nothing else.
  if (write(fd_, text.data(), text.size()) < 0) return;
}

}  // namespace satrap
