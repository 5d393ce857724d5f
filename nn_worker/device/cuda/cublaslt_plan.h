// Matrix products by cuBLASLt. A product is prepared once, which may take milliseconds and memory of the
// host; running it enqueues it and allocates nothing.
//
// A plan has one algorithm, which the library's heuristic names; nothing is timed, so every run and
// every rank with the same card and library takes the same one. It is kept for all numbers of samples,
// and adds in one pass (no reduction across blocks), so the same arguments give the same bits. A row of
// a result may depend on how many rows there are, if the library's kernel treats the last ones apart.
//
// Thread-compatible: a plan has one run at a time, and plans of one planner are prepared one after
// another.

#ifndef SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_PLAN_H_
#define SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "nn_worker/device/cuda/product_spec.h"
#include "nn_worker/device/stream.h"

namespace satrap {

// Device memory, aligned to 16. Factors, c and bias have the types that the spec says.
struct ProductBuffers {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;  // [cols], for the epilogues with a bias
  void* mask = nullptr;  // [rows] x MaskStride(cols) bits: kBiasReluMask writes it, kReluGrad reads
  float* sums = nullptr;  // [cols], for kColumnSums
};

class ProductPlan {
 public:
  virtual ~ProductPlan() = default;
  // Enqueues the product of the first `samples` samples on a stream of a CudaDevice.
  //   workspace: kProductWorkspaceBytes of device memory, aligned to 256; of this stream alone
  //   REQUIRES: 1 <= samples <= the spec's
  virtual void Run(Stream* stream, int64_t samples, const ProductBuffers& buffers,
                   void* workspace) = 0;
};

class ProductPlanner {
 public:
  virtual ~ProductPlanner() = default;
  // NOT_FOUND if the library has no algorithm for it: with an epilogue, try the product without one and
  // do the rest by own kernels; without, the product is for own kernels, too. INTERNAL if the library
  // fails. REQUIRES: ForLibrary(spec); kColumnSums has an f32 output
  virtual absl::StatusOr<std::unique_ptr<ProductPlan>> Prepare(const ProductSpec& spec) = 0;
};

inline constexpr int64_t kProductWorkspaceBytes = int64_t{32} << 20;
inline constexpr char kCublasLtLibrary[] = "libcublasLt.so.13";

// For card `card`. The planner outlives its plans. UNIMPLEMENTED in a build without CUDA;
// FAILED_PRECONDITION if the library is missing or finds no card.
absl::StatusOr<std::unique_ptr<ProductPlanner>> NewCublasLtPlanner(
    int card, const std::string& library = kCublasLtLibrary);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_PLAN_H_
