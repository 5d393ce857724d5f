// The operations of a Backend that kernel_benchmark measures, with shapes from training steps of
// DeepFM, DLRM and the other models of the zoo.
//
// Bytes. Whatever its kernels do, an operation reads each of its inputs at least once and writes
// each of its outputs once; it also reads each target that it adds to. An entry lists these
// tensors, and their shapes give its bytes. Scratch memory, lists of tensors, and repeated reads
// that the caches might serve are not counted. So a share of the copy ceiling is at most 1, and
// what is missing from 1 is what a better kernel could gain.
//
// Sectors. Memory moves sectors of 32 bytes. Operations that exchange rows with samples read
// scattered memory: the row of each id, or the gradient of each sample that a row belongs to. For
// each id they move all sectors that its values touch, even if only other ids need the rest of
// these sectors. The entry of such an operation gives the bytes of these sectors, together with the
// bytes that the operation reads and writes in order.
//
// The tables are constant. Thread-safe.

#ifndef SATRAP_NN_WORKER_BACKEND_BENCHMARK_OPERATION_H_
#define SATRAP_NN_WORKER_BACKEND_BENCHMARK_OPERATION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "nn_worker/backend/benchmark/workbench.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

// An operation with its tensors, to be enqueued any number of times. It must be destroyed before
// its backend.
struct BenchmarkWork {
  std::function<void()> enqueue;
  std::vector<Tensor> reads, writes;  // a tensor that is read and written is in both
  double flops = 0;          // above 0: it is a product, and is judged by the product ceiling
  int64_t sector_bytes = 0;  // bytes with whole sectors; 0: all is read and written in order

  int64_t bytes() const {
    int64_t sum = 0;
    for (const Tensor& tensor : reads) sum += tensor.size_bytes();
    for (const Tensor& tensor : writes) sum += tensor.size_bytes();
    return sum;
  }
};

// The network precisions in which an operation is measured.
enum class OperationTypes {
  kF32,         // it takes only F32, whatever the network's precision
  kBf16,        // there is no such operation in F32
  kF32AndBf16,  // it takes the activations' dtype
  kProducts     // like kF32AndBf16; also measured in TF32 and F16
};

struct BenchmarkOperation {
  const char* name;  // the function of Backend
  const char* what;  // its variant and shape; n: samples of the batch
  OperationTypes types;
  const char* why;  // which bytes it must move at least
  BenchmarkWork (*prepare)(Workbench* on);
  // The number of kernels that the operation starts on a device, however many inputs it has. A sum
  // over samples takes two kernels: one sums up pieces of the samples, and the other adds up these
  // sums.
  int launches = 1;
};

absl::Span<const BenchmarkOperation> ElementwiseOperations();
absl::Span<const BenchmarkOperation> BatchNormOperations();
absl::Span<const BenchmarkOperation> SequenceOperations();
absl::Span<const BenchmarkOperation> SumOperations();
absl::Span<const BenchmarkOperation> PairOperations();
absl::Span<const BenchmarkOperation> GroupOperations();
absl::Span<const BenchmarkOperation> LinearLayerOperations();
absl::Span<const BenchmarkOperation> LossOperationsToMeasure();
absl::Span<const BenchmarkOperation> RowExchangeOperations();
absl::Span<const BenchmarkOperation> StepOperationsToMeasure();

// The operations of all tables.
std::vector<BenchmarkOperation> BenchmarkOperations();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BENCHMARK_OPERATION_H_
