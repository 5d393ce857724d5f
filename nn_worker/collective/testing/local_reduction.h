// DeviceReductions for ranks that are threads of one process. Each rank has its own HostDevice
// (nn_worker/device/host/host_device.h), so tests can sum on devices although the machine has no
// card. Values are added in the order of the ranks, so a sum has the same bits as with
// NewLocalCollectives.
//
// A sum is a kernel that waits for the other ranks' kernels, and ends as soon as any rank is
// aborted or destroyed. While the kernel waits, the rank's device runs nothing else, and calls to
// that device wait, too.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_TESTING_LOCAL_REDUCTION_H_
#define SATRAP_NN_WORKER_COLLECTIVE_TESTING_LOCAL_REDUCTION_H_

#include <memory>
#include <vector>

#include "nn_worker/collective/device_reduction.h"

namespace satrap {

// Element r is for rank r. Each must outlive the sums that it has enqueued. REQUIRES: size >= 1
std::vector<std::unique_ptr<DeviceReduction>> NewLocalReductions(int size);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_TESTING_LOCAL_REDUCTION_H_
