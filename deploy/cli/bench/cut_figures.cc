#include "deploy/cli/bench/cut_figures.h"

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/json/json.h"
#include "proto/report.pb.h"

namespace satrap {
namespace {

// Parses the line into `*event` if it is an event of that name. Returns false for other events, and
// for an incomplete line, which the run may still be writing.
template <typename Line>
bool Read(const std::string& line, absl::string_view name, Line* event) {
  EventLine first;
  return ParseJson(line, &first).ok() && first.event() == name && ParseJson(line, event).ok();
}

}  // namespace

CutFigures ReadCutFigures(const std::string& metrics, double warmup_seconds, double seconds) {
  CutFigures figures;
  double trained_seconds = 0;
  double samples = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(metrics, '\n'))) {
    const bool is_warm = trained_seconds >= warmup_seconds;
    if (is_warm && figures.seconds >= seconds) break;
    TrainLine train;
    PauseLine pause;
    CutLine cut;
    if (Read(line, "train", &train)) {
      trained_seconds += train.seconds();
      if (!is_warm) continue;
      figures.seconds += train.seconds();
      samples += train.seconds() * train.samples_per_second();
    } else if (is_warm && Read(line, "pause", &pause)) {
      figures.pauses.push_back(
          {pause.gap_seconds() - pause.usual_seconds(), pause.usual_seconds()});
    } else if (is_warm && Read(line, "cut", &cut)) {
      if (!cut.committed()) {
        ++figures.abandoned;
        continue;
      }
      figures.writing_seconds.push_back(cut.seconds());
      figures.copied_bytes.push_back(static_cast<double>(cut.copied_bytes()));
    }
  }
  if (figures.seconds > 0) figures.samples_per_second = samples / figures.seconds;
  return figures;
}

}  // namespace satrap
