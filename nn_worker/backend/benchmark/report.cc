#include "nn_worker/backend/benchmark/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace satrap {
namespace {

constexpr double kHostBound = 0.8;

}  // namespace

std::string BenchmarkRow::note() const {
  std::string note = made_by;
  const auto add = [&](const char* text) {
    absl::StrAppend(&note, note.empty() ? "" : ", ", text);
  };
  if (flops == 0 && bytes <= kL2Bytes) add("fits L2");
  if (timing.host_seconds >= kHostBound * timing.seconds) add("host-bound");
  return note;
}

std::string JsonOf(const BenchmarkPlace& place, const BenchmarkRow& row) {
  std::string json = absl::StrFormat(
      "{\"benchmark\": \"kernel\", \"device\": \"%s\", \"cpu\": \"%s\", "
      "\"operation\": \"%s\", \"what\": \"%s\", \"precision\": \"%s\", \"batch\": %d, "
      "\"us\": %.2f, \"host_us\": %.2f, ",
      place.device, place.cpu, row.operation, row.what, row.precision, place.batch,
      1e6 * row.timing.seconds, 1e6 * row.timing.host_seconds);
  if (row.flops > 0) {
    absl::StrAppendFormat(&json, "\"flop\": %.0f, \"tflop_per_s\": %.4g, ", row.flops,
                          1e-12 * row.rate());
  } else {
    absl::StrAppendFormat(&json, "\"bytes\": %d, \"gb_per_s\": %.4g, ", row.bytes,
                          1e-9 * row.rate());
  }
  absl::StrAppendFormat(&json, "\"ceiling\": \"%s\", \"share\": %.4g, \"note\": \"%s\"}",
                        row.flops > 0 ? "product" : "copy", row.share(), row.note());
  return json;
}

std::string TableOf(std::vector<BenchmarkRow> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const BenchmarkRow& a, const BenchmarkRow& b) {
    const bool a_is_ceiling = a.ceiling == 0, b_is_ceiling = b.ceiling == 0;
    if (a_is_ceiling != b_is_ceiling) return a_is_ceiling;
    return a.share() < b.share();
  });
  std::string table = absl::StrFormat("%7s %-8s %14s %9s %9s  %-5s %-20s %s\n", "share", "of",
                                      "rate", "us", "MB", "in", "operation", "what");
  for (const BenchmarkRow& row : rows) {
    const bool product = row.flops > 0;
    const std::string share =
        row.ceiling > 0 ? absl::StrFormat("%.1f%%", 100 * row.share()) : "ceiling";
    const std::string rate = product ? absl::StrFormat("%.4g TFLOP/s", 1e-12 * row.rate())
                                     : absl::StrFormat("%.4g GB/s", 1e-9 * row.rate());
    const std::string megabytes =
        product ? "" : absl::StrFormat("%.1f", 1e-6 * static_cast<double>(row.bytes));
    const std::string note = row.note();
    absl::StrAppendFormat(&table, "%7s %-8s %14s %9.1f %9s  %-5s %-20s %s%s%s\n", share,
                          product ? "product" : "copy", rate, 1e6 * row.timing.seconds, megabytes,
                          row.precision, row.operation, row.what, note.empty() ? "" : "; ", note);
  }
  return table;
}

}  // namespace satrap
