#include "deploy/cli/bench/cut_figures.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace satrap {
namespace {

// A number of a line of metrics.jsonl; 0 if it has none of that name.
double NumberIn(const std::string& line, const std::string& name) {
  const std::string key = absl::StrCat("\"", name, "\":");
  const size_t at = line.find(key);
  return at == std::string::npos ? 0 : std::strtod(line.c_str() + at + key.size(), nullptr);
}

bool IsEvent(const std::string& line, const std::string& name) {
  return absl::StartsWith(line, absl::StrCat("{\"event\":\"", name, "\","));
}

void AddCut(const std::string& line, CutFigures* figures) {
  if (!absl::StrContains(line, "\"committed\":true")) {
    ++figures->abandoned;
    return;
  }
  figures->writing_seconds.push_back(NumberIn(line, "seconds"));
  figures->copied_bytes.push_back(NumberIn(line, "copied_bytes"));
}

}  // namespace

CutFigures ReadCutFigures(const std::string& metrics, double warmup_seconds, double seconds) {
  CutFigures figures;
  double trained_seconds = 0;
  double samples = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(metrics, '\n'))) {
    const bool is_warm = trained_seconds >= warmup_seconds;
    if (is_warm && figures.seconds >= seconds) break;
    if (IsEvent(line, "train")) {
      const double window = NumberIn(line, "seconds");
      trained_seconds += window;
      if (!is_warm) continue;
      figures.seconds += window;
      samples += window * NumberIn(line, "samples_per_second");
    } else if (is_warm && IsEvent(line, "pause")) {
      const double usual = NumberIn(line, "usual_seconds");
      figures.pauses.push_back({NumberIn(line, "gap_seconds") - usual, usual});
    } else if (is_warm && IsEvent(line, "cut")) {
      AddCut(line, &figures);
    }
  }
  if (figures.seconds > 0) figures.samples_per_second = samples / figures.seconds;
  return figures;
}

}  // namespace satrap
