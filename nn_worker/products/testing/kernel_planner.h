// A planner for tests that replaces a vendor's library. Its plans enqueue our own kernels, so they
// run on the host's device. A function decides which products the planner refuses.
//
// Before the epilogue, sums have the same bits as those of kernel_products.h; in a product in
// pieces, each piece is summed in one sequence. A plan overwrites its workspace before it begins,
// and fails a CHECK if a buffer is not aligned as its spec says or if its epilogue lacks a buffer.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_PRODUCTS_TESTING_KERNEL_PLANNER_H_
#define SATRAP_NN_WORKER_PRODUCTS_TESTING_KERNEL_PLANNER_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "nn_worker/device/product_plan.h"

namespace satrap {

// The products that a planner has planned, and those that its plans have run.
struct PlannerLog {
  std::vector<ProductSpec> prepared;  // without the refused ones
  std::vector<ProductSpec> run;       // in the order of the runs
};

// Returns OK, or the error that Prepare must return for the product.
using Refusal = std::function<absl::Status(const ProductSpec&)>;

// `log` may be null. It must outlive the planner and its plans.
std::unique_ptr<ProductPlanner> NewKernelPlanner(Refusal refusal = {}, PlannerLog* log = nullptr);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_PRODUCTS_TESTING_KERNEL_PLANNER_H_
