// Measures the operations of a DeviceBackend, and the products of linear layers, one after another
// on the device that the program links (device_factory.h). Prints each rate as a share of a
// ceiling, which is the rate of a copy or of a large product (operation.h, products.h).
//
// Each operation gets a new backend, so no operation shares memory, lists or scratch memory with
// another.

#ifndef SATRAP_NN_WORKER_BACKEND_BENCHMARK_KERNEL_BENCHMARK_H_
#define SATRAP_NN_WORKER_BACKEND_BENCHMARK_KERNEL_BENCHMARK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/flags/flags.h"
#include "nn_worker/backend/benchmark/report.h"

namespace satrap {

struct BenchmarkFlags {
  int64_t batch = 0;  // samples; 0: 65536 on a card, 32 on the host's device or if `small`
  int card = 0;
  bool small = false;     // measures on a card as little as on the host's device
  std::string only;       // ceilings, and rows whose printed operation and shape contain this
  std::string precision;  // F32, TF32 (on a card), BF16 or F16; empty: all
  std::vector<Flag> Table();
};

// Calls `made` with each row as soon as it is measured. Returns the error of NewJobDevice if the
// device cannot be used; NOT_FOUND if no row matches `flags.only`; INVALID_ARGUMENT for TF32
// without a card.
absl::Status RunKernelBenchmark(
    const BenchmarkFlags& flags,
    absl::FunctionRef<void(const BenchmarkPlace& place, const BenchmarkRow& row)> made);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BENCHMARK_KERNEL_BENCHMARK_H_
