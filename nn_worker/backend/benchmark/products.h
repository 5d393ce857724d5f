// Measures on a device, without a Backend: the ceilings by which kernel_benchmark judges kernels,
// the three products of linear layers by themselves, and kernels that only a layer's backward pass
// launches.
//
//   copy ceiling      a copy of device memory to device memory; each byte counts twice, when it is
//                     read and when it is written
//   product ceiling   a large square product, computed by the device's library, or by our own
//                     kernel where there is no library or it refuses the product
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_BACKEND_BENCHMARK_PRODUCTS_H_
#define SATRAP_NN_WORKER_BACKEND_BENCHMARK_PRODUCTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "nn_worker/backend/benchmark/report.h"
#include "nn_worker/backend/device/device_factory.h"

namespace satrap {

enum class LinearProduct { kForward, kInputGradient, kWeightGradient };
// The product's name in the rows of the report, such as "429 x 400, forward".
std::string ProductName(LinearProduct product, int64_t in, int64_t out);

class ProductBenchmark {
 public:
  // `device` was made for a job with this precision, which decides how it multiplies F32 values.
  static absl::StatusOr<std::unique_ptr<ProductBenchmark>> Create(
      JobDevice device, NnWorkerConfig::Precision precision, const TimingOptions& timing);
  // Waits until everything enqueued has run.
  ~ProductBenchmark();

  // These return rows whose ceiling is not set. RESOURCE_EXHAUSTED if there is not enough memory;
  // INTERNAL if a library or the device fails.
  absl::StatusOr<BenchmarkRow> Copy(int64_t bytes);
  absl::StatusOr<BenchmarkRow> Square(int64_t size);
  // One of the products of a layer with weights (in, out), for `samples` samples. As in a network,
  // it multiplies the padding of both widths, too, but the row counts only the operations without
  // padding.
  absl::StatusOr<BenchmarkRow> OfLayer(LinearProduct product, int64_t samples, int64_t in,
                                       int64_t out);
  // The gradient of a ReLU, in place, and the gradient of the layer's bias, for outputs (samples,
  // cols). Reads y and dy, writes dy and the sums.
  absl::StatusOr<BenchmarkRow> ReluAndBiasGradient(int64_t samples, int64_t cols);
  // The backward pass of a layer (in, 1), with the gradients of the ReLU and of the bias of the
  // layer below. Reads x, w and dz, writes dx and the gradients of the parameters.
  absl::StatusOr<BenchmarkRow> OneOutputGradients(int64_t samples, int64_t in);

 private:
  struct Factors;

  ProductBenchmark(JobDevice device, NnWorkerConfig::Precision precision,
                   const TimingOptions& timing)
      : precision_(precision), timing_(timing), on_(std::move(device)) {}
  absl::StatusOr<BenchmarkRow> Run(LinearProduct product, Factors* factors);
  // The tensors of a layer in the benchmark's precision, filled with random values.
  absl::StatusOr<Factors> NewFactors(int64_t samples, int64_t in, int64_t out);
  absl::StatusOr<std::unique_ptr<Memory>> AllocateRandom(int64_t bytes, bool f32);
  absl::StatusOr<Timing> Time(absl::FunctionRef<void()> enqueue);
  absl::Status Await();

  const NnWorkerConfig::Precision precision_;
  const TimingOptions timing_;
  JobDevice on_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Event> event_;
  std::unique_ptr<Memory> workspace_;                   // of plans
  std::unique_ptr<Memory> f32_pattern_, half_pattern_;  // pinned: values to fill memory with
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BENCHMARK_PRODUCTS_H_
