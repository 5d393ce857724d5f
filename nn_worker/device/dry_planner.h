// A planner that accepts every product and whose plans do nothing. With a dry device (dry_device.h)
// it shows how much device memory a program needs for a vendor's library, without the library. A
// real library refuses some products; the program then uses no more memory than this planner shows.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_DEVICE_DRY_PLANNER_H_
#define SATRAP_NN_WORKER_DEVICE_DRY_PLANNER_H_

#include <memory>

#include "nn_worker/device/product_plan.h"

namespace satrap {

// The planner's workspace has kMostPlanWorkspaceBytes.
std::unique_ptr<ProductPlanner> NewDryPlanner();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_DRY_PLANNER_H_
