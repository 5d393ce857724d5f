// DeviceReductions for ranks that are threads of one process. Each rank has a HostDevice
// (nn_worker/device/host/host_device.h) of its own. They serve to test sums on devices without
// cards. Sums are made in rank order, so they have the bits of NewLocalCollectives.
//
// A sum is a kernel that waits for the other ranks' kernels, and ends as soon as any rank is
// aborted or destroyed. While it waits, the rank's device runs nothing else, and calls of that
// device wait, too.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_LOCAL_REDUCTION_H_
#define SATRAP_NN_WORKER_COLLECTIVE_LOCAL_REDUCTION_H_

#include <memory>
#include <vector>

#include "nn_worker/collective/device_reduction.h"

namespace satrap {

// Element r is for rank r. Each outlives the sums that it has enqueued. REQUIRES: size >= 1
std::vector<std::unique_ptr<DeviceReduction>> NewLocalReductions(int size);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_LOCAL_REDUCTION_H_
