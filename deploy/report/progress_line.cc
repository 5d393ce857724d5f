#include "deploy/report/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "deploy/report/run_report.h"

namespace satrap {
namespace {

constexpr int64_t kTerminalPeriodMs = 250;
constexpr int64_t kPlainPeriodMs = 5000;
constexpr size_t kBarWidth = 20;

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

// REQUIRES: fraction in [0, 1]
std::string Bar(double fraction) {
  const auto full = static_cast<size_t>(fraction * kBarWidth);
  return absl::StrCat("[", std::string(full, '#'), std::string(kBarWidth - full, '.'), "] ");
}

// Ordered from the most important to the least important.
enum Importance {
  kPhase,
  kPercentage,
  kStep,
  kTimeLeft,
  kLoss,
  kLag,
  kSamplesPerSecond,
  kValidation,
  kAuc,
  kSamples,
  kBar,
  kRates,
  kNorm,
  kStaleness,
  kWatermark,
  kLeastImportant = kWatermark,
};

// A part of the line, with the separator that precedes it.
struct Part {
  Importance importance;
  std::string text;
};

std::string ValidationText(const MetricValues& valid) {
  if (valid.has_auc()) return absl::StrFormat(" | valid auc %.4f", valid.auc());
  if (valid.has_rmse()) return absl::StrFormat(" | valid rmse %.4f", valid.rmse());
  if (valid.has_logloss()) return absl::StrFormat(" | valid logloss %.4f", valid.logloss());
  return "";  // a task whose loss has no metric
}

std::string LagText(const TopicsStatus& topics) {
  std::string text = absl::StrCat(" | lag ", CountText(topics.lag_messages()));
  if (topics.has_lag_seconds()) absl::StrAppendFormat(&text, " (%.1f s)", topics.lag_seconds());
  return text;
}

// The parts whose values are known, in the order in which they are shown, without the bar.
std::vector<Part> PartsOf(const StatusAnswer& status) {
  const TrainProgress& train = status.train();
  std::vector<Part> parts = {{kPhase, Phase(status)}};
  if (status.state() != RUNNING || train.step() == 0) return parts;
  // An endless stream has no epochs, and no number of samples to compare with.
  if (train.endless()) {
    parts.push_back({kStep, absl::StrCat("  step ", CountText(train.step()))});
    parts.push_back({kSamples, absl::StrCat(" | ", Counted(train.samples(), "sample"))});
  } else {
    parts.push_back({kStep, absl::StrFormat("  epoch %d  step %s", train.epoch() + 1,
                                            CountText(train.step()))});
  }
  if (train.samples_per_second() > 0) {
    const auto rate = static_cast<uint64_t>(train.samples_per_second());
    parts.push_back({kSamplesPerSecond, absl::StrCat(" | ", CountText(rate), " samples/s")});
  }
  if (train.has_window_loss()) {
    parts.push_back({kLoss, absl::StrFormat(" | loss %.4f", train.window_loss())});
  }
  if (train.has_window_auc() && std::isfinite(train.window_auc())) {
    parts.push_back({kAuc, absl::StrFormat(" | auc %.4f", train.window_auc())});
  }
  if (train.has_staleness_max()) {
    parts.push_back({kStaleness, absl::StrFormat(" | staleness %.1f (max %d)",
                                                 train.staleness_mean(), train.staleness_max())});
  }
  if (const GradientNorms& norms = train.gradient_norms(); norms.steps() > 0) {
    parts.push_back(
        {kNorm, absl::StrFormat(" | norm %.4g (mean %.4g, %s of %s clipped)", norms.last(),
                                MeanNorm(norms), CountText(norms.clipped_steps()),
                                Counted(norms.steps(), "step"))});
  }
  if (train.has_learning_rate_factor()) {
    parts.push_back({kRates, absl::StrFormat(" | rates x %g (%s)", train.learning_rate_factor(),
                                             Counted(train.reductions(), "reduction"))});
  }
  if (train.has_last_valid()) parts.push_back({kValidation, ValidationText(train.last_valid())});
  if (status.topics().has_lag_messages()) parts.push_back({kLag, LagText(status.topics())});
  if (status.topics().has_watermark_ms()) {
    parts.push_back(
        {kWatermark, absl::StrCat(" | watermark ", UtcText(status.topics().watermark_ms()))});
  }
  if (!train.endless() && train.has_seconds_left() && train.seconds_left() >= 0) {
    parts.push_back({kTimeLeft, absl::StrCat(" | ", DurationText(train.seconds_left()), " left")});
  }
  return parts;
}

// Joins the parts whose importance is at least `least`.
std::string Joined(const std::vector<Part>& parts, int least) {
  std::string text;
  for (const Part& part : parts) {
    if (part.importance <= least) text += part.text;
  }
  return text;
}

}  // namespace

std::string ProgressText(const StatusAnswer& status) {
  return Joined(PartsOf(status), kLeastImportant);
}

std::string FittedProgress(const StatusAnswer& status, size_t columns) {
  std::vector<Part> parts = PartsOf(status);
  if (const double fraction = ProgressFraction(status); fraction >= 0) {
    parts.insert(parts.begin(), {{kBar, Bar(fraction)},
                                 {kPercentage, absl::StrFormat("%3.0f%% ", fraction * 100)}});
  }
  std::string text;
  for (int least = kLeastImportant; least >= kPhase; --least) {
    text = Joined(parts, least);
    if (text.size() < columns) return text;
  }
  return FittedBar("", text, columns);
}

std::string FittedBar(absl::string_view bar, absl::string_view text, size_t columns) {
  if (bar.size() + text.size() < columns) return absl::StrCat(bar, text);
  return std::string(text.substr(0, columns == 0 ? 0 : columns - 1));
}

size_t TerminalColumns(int fd) {
  constexpr size_t kUsual = 80;
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
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
    Write(absl::StrCat("\r", FittedProgress(status, columns_(fd_)), "\x1b[K"));
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
  if (write_ != nullptr) return write_(text);
  // If stderr is closed, the progress is lost, but the run continues.
  if (write(fd_, text.data(), text.size()) < 0) return;
}

}  // namespace satrap
