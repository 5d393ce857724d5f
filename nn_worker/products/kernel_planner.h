// A planner for tests, in place of a vendor's library: its plans enqueue our own kernels, so they
// run on the host's device. A function decides which products it refuses.
//
// Sums have the bits of kernel_products.h, whatever the epilogue does with them. A plan overwrites
// its workspace before it begins, and fails a CHECK if a buffer is not aligned as its spec says or
// if its epilogue lacks a buffer.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_PRODUCTS_KERNEL_PLANNER_H_
#define SATRAP_NN_WORKER_PRODUCTS_KERNEL_PLANNER_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "nn_worker/device/product_plan.h"

namespace satrap {

// What a planner has planned, and what its plans have run.
struct PlannerLog {
  std::vector<ProductSpec> prepared;  // refused ones are not among them
  std::vector<ProductSpec> run;       // in the order of the runs
};

// Returns OK, or the error that Prepare is to return.
using Refusal = std::function<absl::Status(const ProductSpec&)>;

// `log` may be null, and outlives the planner and its plans.
std::unique_ptr<ProductPlanner> NewKernelPlanner(Refusal refusal = {}, PlannerLog* log = nullptr);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_PRODUCTS_KERNEL_PLANNER_H_
