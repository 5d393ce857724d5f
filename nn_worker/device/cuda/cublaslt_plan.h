// The plans of cuBLASLt (product_plan.h). Preparing a plan may take milliseconds and host memory;
// running it only enqueues it and allocates nothing.
//
// A plan uses one algorithm: the one that was measured to be the fastest (algorithm_table.h), if
// the library's heuristic offers it, and otherwise the first that the heuristic offers. Nothing is
// timed in a run, so all runs and ranks with the same card and library choose the same algorithm.
// The algorithm is used for all numbers of samples. It adds in one pass (no reduction across
// blocks), so the same arguments give the same bits. A row of a result may depend on how many rows
// there are, if the library's kernel treats the last rows differently.
//
// A plan of pieces has two algorithms: one for all whole pieces, in one batched product, and one
// for a last piece with fewer samples.
//
// Algorithms of cuBLASLt have numbers but no names, so plans do not look at names. cuBLASLt has no
// slow reference algorithm for products that it does not support: it then offers no algorithm,
// which is NOT_FOUND, and our own kernels take over.
//
// Thread-compatible: a plan runs once at a time, and a planner prepares one plan at a time.

#ifndef SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_PLAN_H_
#define SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn_worker/device/cuda/algorithm_table.h"
#include "nn_worker/device/product_plan.h"

namespace satrap {

inline constexpr char kCublasLtLibrary[] = "libcublasLt.so.13";

// An algorithm that a plan may use. If the product has pieces, `plan` uses it for the whole pieces.
struct PlannedAlgorithm {
  AlgorithmConfig algorithm = {};
  std::unique_ptr<ProductPlan> plan;
};

class CublasLtPlanner : public ProductPlanner {
 public:
  virtual AlgorithmPlace place() const = 0;
  // A plan for each algorithm that the library offers and that supports all numbers of samples. The
  // first is the one that Prepare returns. Errors are those of Prepare.
  virtual absl::StatusOr<std::vector<PlannedAlgorithm>> PrepareAll(const ProductSpec& spec) = 0;
};

// Makes a planner for card `card`; its plans run on streams of a CudaDevice. UNIMPLEMENTED in a
// build without CUDA; FAILED_PRECONDITION if the library is missing or finds no card.
//   table: must outlive the planner
absl::StatusOr<std::unique_ptr<CublasLtPlanner>> NewCublasLtPlanner(
    int card, const std::string& library = kCublasLtLibrary,
    absl::Span<const MeasuredAlgorithm> table = MeasuredAlgorithms());

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_PLAN_H_
