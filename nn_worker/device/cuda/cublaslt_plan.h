// The plans of cuBLASLt (product_plan.h). Preparing a plan may take milliseconds and host memory;
// running it only enqueues it and allocates nothing.
//
// A plan uses one algorithm, chosen by the library's heuristic. Nothing is timed, so all runs and
// ranks with the same card and library choose the same algorithm. The algorithm is used for all
// numbers of samples. It adds in one pass (no reduction across blocks), so the same arguments give
// the same bits. A row of a result may depend on how many rows there are, if the library's kernel
// treats the last rows differently.
//
// The algorithm is not asked for a name: an algorithm of cuBLASLt has only a number. And cuBLASLt
// has no slow reference for what it lacks: it then offers no algorithm, which is NOT_FOUND, and our
// own kernels take over.
//
// Thread-compatible: a plan runs once at a time, and a planner prepares one plan at a time.

#ifndef SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_PLAN_H_
#define SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_PLAN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "nn_worker/device/product_plan.h"

namespace satrap {

inline constexpr char kCublasLtLibrary[] = "libcublasLt.so.13";

// Makes a planner for card `card`; its plans run on streams of a CudaDevice. UNIMPLEMENTED in a
// build without CUDA; FAILED_PRECONDITION if the library is missing or finds no card.
absl::StatusOr<std::unique_ptr<ProductPlanner>> NewCublasLtPlanner(
    int card, const std::string& library = kCublasLtLibrary);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_PLAN_H_
