// Measures the operations of a DeviceBackend, and the products of linear layers, one after another
// on the device that the program links (device_factory.h), and prints each one's share of what the
// device can do: of a copy's rate, or of a large product's (operation.h, products.h).
//
// Each operation gets a backend of its own, so none has the memory, the lists or the scratch of
// another.

#ifndef SATRAP_NN_WORKER_BACKEND_BENCHMARK_KERNEL_BENCHMARK_H_
#define SATRAP_NN_WORKER_BACKEND_BENCHMARK_KERNEL_BENCHMARK_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "nn_worker/backend/benchmark/flags.h"
#include "nn_worker/backend/benchmark/report.h"

namespace satrap {

// `made` gets each row as soon as it is measured. The error of NewJobDevice if the device cannot be
// used; NOT_FOUND if no row matches `flags.only`; INVALID_ARGUMENT for TF32 without a
// card.
absl::Status RunKernelBenchmark(
    const BenchmarkFlags& flags,
    absl::FunctionRef<void(const BenchmarkPlace& place, const BenchmarkRow& row)> made);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BENCHMARK_KERNEL_BENCHMARK_H_
