// The line that shows a run's progress. On a terminal it is one line with a bar, overwritten in
// place. That line is never longer than the terminal's current width, because only the last row of
// a wrapped line could be overwritten. Elsewhere, a plain line is written every few seconds, and at
// once when the phase changes.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_REPORT_PROGRESS_LINE_H_
#define SATRAP_DEPLOY_REPORT_PROGRESS_LINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/control.pb.h"

namespace satrap {

// The progress line with the figures that are known, for example:
//   training  epoch 1  step 120 | 54,321 samples/s | loss 0.4712 | auc 0.7312 |
//   staleness 1.8 (max 4) | norm 3.2 (mean 2.5, 30 of 120 steps clipped) |
//   rates x 0.1 (1 reduction) | 12.0 s left
// and for a run that trains from endless topics:
//   training  step 120 | 491,520 samples | 54,321 samples/s | loss 0.4712 | lag 1,234 (0.8 s) |
//   watermark 2026-05-01T09:30:00Z
std::string ProgressText(const StatusAnswer& status);

// The progress bar, followed by the text of ProgressText, in less than `columns` columns: the last
// column stays free, because a terminal may wrap there. Parts that do not fit are left out, in this
// order: watermark, staleness, norm, rates, the bar without its percentage, the samples of an
// endless run, auc, valid, samples/s, lag, loss, time left, epoch and step, percentage. The phase
// always remains, but is shortened if necessary.
std::string FittedProgress(const StatusAnswer& status, size_t columns);

// `bar` and `text` if both fit in less than `columns` columns; otherwise as much of `text` as fits.
std::string FittedBar(absl::string_view bar, absl::string_view text, size_t columns);

// The current width of the terminal `fd`; 80 if that is not known.
size_t TerminalColumns(int fd);

// The fraction of the run that is done, in [0, 1]; negative if it is unknown.
double ProgressFraction(const StatusAnswer& status);

class ProgressLine {
 public:
  // Writes to the file descriptor `fd`, which is not owned. If `write` is not null, passes the
  // texts to that instead; `write` may drop them. `columns` is called before each write to a
  // terminal.
  ProgressLine(int fd, bool is_terminal, std::function<size_t(int fd)> columns = TerminalColumns,
               std::function<void(const std::string& text)> write = nullptr)
      : fd_(fd),
        is_terminal_(is_terminal),
        columns_(std::move(columns)),
        write_(std::move(write)) {}

  // Shows the status, unless the last line is too recent. `now_ms` is a monotonic clock.
  void Show(const StatusAnswer& status, int64_t now_ms);
  // Ends an overwritten line, so that other output may follow.
  void End();

 private:
  void Write(const std::string& text);

  const int fd_;
  const bool is_terminal_;
  const std::function<size_t(int fd)> columns_;
  const std::function<void(const std::string&)> write_;
  std::string last_phase_;
  int64_t next_ms_ = 0;
  bool line_open_ = false;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_PROGRESS_LINE_H_
