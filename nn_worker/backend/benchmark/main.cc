// Measures each kernel's share of what its device can do (kernel_benchmark.h). kernel_benchmark
// runs on the host's device, kernel_benchmark_cuda on a card.

#include <cstdio>
#include <string>
#include <vector>

#include "common/json/json.h"
#include "nn_worker/backend/benchmark/kernel_benchmark.h"
#include "nn_worker/backend/benchmark/report.h"

namespace satrap {
namespace {

int Main(const BenchmarkFlags& flags) {
  std::vector<BenchmarkRow> rows;
  const absl::Status status =
      RunKernelBenchmark(flags, [&](const BenchmarkPlace& place, const BenchmarkRow& row) {
        PrintJson(LineOf(place, row));
        rows.push_back(row);
      });
  if (!rows.empty()) std::printf("\n%s", TableOf(rows).c_str());
  if (status.ok()) return 0;
  std::fprintf(stderr, "kernel_benchmark: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  satrap::BenchmarkFlags flags;
  const auto code =
      satrap::TakeProgramFlags(argc, argv, "usage: kernel_benchmark [FLAGS]", flags.Table());
  return code.has_value() ? *code : satrap::Main(flags);
}
