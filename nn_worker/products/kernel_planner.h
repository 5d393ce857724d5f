// A planner for tests that takes the place of a vendor's library: its plans enqueue our own
// kernels, so they run on the host's device. It refuses what it is told to.
//
// The sums are those of kernel_products.h, with its bits, whatever is done with them on the way
// out. A plan overwrites its workspace before it begins, and fails a CHECK for buffers that are not
// aligned as its spec says, or that its epilogue misses.
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

// What became of the plans of a planner.
struct PlannerLog {
  std::vector<ProductSpec> prepared;  // refused ones are not among them
  std::vector<ProductSpec> run;       // in the order of the runs
};

// What Prepare returns if it is not OK.
using Refusal = std::function<absl::Status(const ProductSpec&)>;

// `log` may be null, and outlives the planner and its plans.
std::unique_ptr<ProductPlanner> NewKernelPlanner(Refusal refusal = {}, PlannerLog* log = nullptr);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_PRODUCTS_KERNEL_PLANNER_H_
