// DeviceBackend on HostDevice with the plans of a library, for which a kernel planner stands in
// (nn_worker/products/kernel_planner.h): what a network on a card goes through, for tests on the
// CPU.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_PLANNED_HOST_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_PLANNED_HOST_BACKEND_H_

#include <memory>

#include "nn_worker/backend/backend.h"
#include "nn_worker/device/host/host_device.h"
#include "nn_worker/products/kernel_planner.h"

namespace satrap {

std::unique_ptr<Backend> NewPlannedHostBackend(const HostDeviceOptions& options,
                                               Refusal refusal = {}, PlannerLog* log = nullptr);

// Refuses epilogue e (ProductEpilogue) if bit e of `pattern` is set, and results of 16 bits if bit
// kNumEpilogues is: with NOT_FOUND, as a library does.
inline constexpr unsigned kNumEpilogues = 6;
inline constexpr unsigned kEpiloguePatterns = 1u << kNumEpilogues;
inline constexpr unsigned kRefusalPatterns = kEpiloguePatterns << 1;
Refusal RefusesPattern(unsigned pattern);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_PLANNED_HOST_BACKEND_H_
