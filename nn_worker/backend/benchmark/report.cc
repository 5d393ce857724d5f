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

KernelLine LineOf(const BenchmarkPlace& place, const BenchmarkRow& row) {
  KernelLine line;
  line.set_benchmark("kernel");
  line.set_device(place.device);
  line.set_cpu(place.cpu);
  line.set_operation(row.operation);
  line.set_what(row.what);
  line.set_precision(row.precision);
  line.set_batch(place.batch);
  line.set_us(1e6 * row.timing.seconds);
  line.set_host_us(1e6 * row.timing.host_seconds);
  if (row.flops > 0) {
    line.set_flop(row.flops);
    line.set_tflop_per_s(1e-12 * row.rate());
  } else {
    line.set_bytes(row.bytes);
    line.set_gb_per_s(1e-9 * row.rate());
  }
  if (row.sector_bytes > 0) {
    line.set_sector_bytes(row.sector_bytes);
    line.set_sector_share(row.sector_share());
  }
  line.set_ceiling(row.flops > 0 ? "product" : "copy");
  line.set_share(row.share());
  line.set_note(row.note());
  return line;
}

std::string TableOf(std::vector<BenchmarkRow> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const BenchmarkRow& a, const BenchmarkRow& b) {
    const bool a_is_ceiling = a.ceiling == 0, b_is_ceiling = b.ceiling == 0;
    if (a_is_ceiling != b_is_ceiling) return a_is_ceiling;
    return a.share() < b.share();
  });
  std::string table =
      absl::StrFormat("%7s %7s %-8s %14s %9s %9s  %-5s %-20s %s\n", "share", "sectors", "of",
                      "rate", "us", "MB", "in", "operation", "what");
  for (const BenchmarkRow& row : rows) {
    const bool product = row.flops > 0;
    const std::string share =
        row.ceiling > 0 ? absl::StrFormat("%.1f%%", 100 * row.share()) : "ceiling";
    const std::string sectors =
        row.sector_bytes > 0 ? absl::StrFormat("%.1f%%", 100 * row.sector_share()) : "";
    const std::string rate = product ? absl::StrFormat("%.4g TFLOP/s", 1e-12 * row.rate())
                                     : absl::StrFormat("%.4g GB/s", 1e-9 * row.rate());
    const std::string megabytes =
        product ? "" : absl::StrFormat("%.1f", 1e-6 * static_cast<double>(row.bytes));
    const std::string note = row.note();
    absl::StrAppendFormat(&table, "%7s %7s %-8s %14s %9.1f %9s  %-5s %-20s %s%s%s\n", share,
                          sectors, product ? "product" : "copy", rate, 1e6 * row.timing.seconds,
                          megabytes, row.precision, row.operation, row.what,
                          note.empty() ? "" : "; ", note);
  }
  return table;
}

}  // namespace satrap
