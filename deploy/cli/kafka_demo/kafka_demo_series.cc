#include "deploy/cli/kafka_demo/kafka_demo_series.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "deploy/report/run_report.h"

namespace satrap {
namespace {

// A half with fewer measurements (looks) than this is too short to compare.
constexpr size_t kFewestLooks = 3;

// The mean memory of a process over the measurements of a half. Undefined if a measurement lacks
// the process, or if every measurement lacks the memory of the process's rows.
struct MeanMemory {
  double others = 0;  // all memory except the rows
  double rows = 0;
};

// The measurements in the first or in the second half of the time after the warm-up.
struct Half {
  std::vector<const KafkaDemoLook*> looks;

  // Absent if the lag is missing in one of the measurements.
  absl::optional<double> MeanLag() const {
    double sum = 0;
    for (const KafkaDemoLook* look : looks) {
      if (!look->lag_messages.has_value()) return absl::nullopt;
      sum += static_cast<double>(*look->lag_messages);
    }
    return sum / static_cast<double>(looks.size());
  }
  absl::optional<MeanMemory> Memory(const std::string& process) const {
    MeanMemory sum;
    int known = 0;
    for (const KafkaDemoLook* look : looks) {
      const auto at = look->memory.find(process);
      if (at == look->memory.end()) return absl::nullopt;
      const ProcessMemory& memory = at->second;
      if (!memory.rows.has_value()) continue;
      // The PS counts pages of rows that the kernel has not committed yet, so `rows` may exceed the
      // process's resident memory.
      sum.others += static_cast<double>(memory.resident - std::min(memory.resident, *memory.rows));
      sum.rows += static_cast<double>(*memory.rows);
      ++known;
    }
    if (known == 0) return absl::nullopt;
    return MeanMemory{sum.others / known, sum.rows / known};
  }
  double Rate() const {
    const double seconds = looks.back()->seconds - looks.front()->seconds;
    const auto samples = static_cast<double>(looks.back()->samples - looks.front()->samples);
    return samples / std::max(seconds, 1e-3);
  }
};

std::string Row(const std::string& name, const std::string& first, const std::string& second,
                const std::string& change = "") {
  return absl::StrFormat("  %-22s %14s %14s %9s\n", name, first, second, change);
}

std::string Bytes(double bytes) { return BytesText(static_cast<uint64_t>(bytes)); }

std::string BytesRow(const std::string& name, double first, double second) {
  return Row(name, Bytes(first), Bytes(second),
             absl::StrFormat("%+.1f %%", (second / first - 1) * 100));
}

std::string Count(double count) { return CountText(static_cast<uint64_t>(count)); }

}  // namespace

std::string KafkaDemoSeries::Text() const {
  const double end = looks_.empty() ? 0 : looks_.back().seconds;
  const double warm = end / 3;
  Half first;
  Half second;
  for (const KafkaDemoLook& look : looks_) {
    if (look.seconds < warm) continue;
    (look.seconds < (warm + end) / 2 ? first : second).looks.push_back(&look);
  }
  if (first.looks.size() < kFewestLooks || second.looks.size() < kFewestLooks) {
    return "the run was too short to show whether lag and memory grow\n";
  }
  std::string text =
      absl::StrCat("after a warm-up of ", DurationText(warm), ", the two halves of the rest:\n",
                   Row("", "first half", "second half", "change"),
                   Row("samples/s", Count(first.Rate()), Count(second.Rate())));
  const auto lag_first = first.MeanLag();
  const auto lag_second = second.MeanLag();
  if (lag_first.has_value() && lag_second.has_value()) {
    absl::StrAppend(&text, Row("lag, messages", Count(*lag_first), Count(*lag_second)));
  }
  for (const auto& entry : looks_.back().memory) {
    const std::string& process = entry.first;
    const auto before = first.Memory(process);
    const auto after = second.Memory(process);
    if (!before.has_value() || !after.has_value()) continue;
    const bool has_rows = after->rows > 0;
    absl::StrAppend(
        &text, BytesRow(has_rows ? process + ", other" : process, before->others, after->others));
    if (has_rows) absl::StrAppend(&text, BytesRow(process + ", rows", before->rows, after->rows));
  }
  return text;
}

}  // namespace satrap
