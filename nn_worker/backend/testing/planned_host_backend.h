// DeviceBackend on HostDevice with the plans that otherwise only a vendor's library makes. Here a
// kernel planner (nn_worker/products/testing/kernel_planner.h) makes them. So tests on the CPU run
// the same code as a network on a card.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_PLANNED_HOST_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_PLANNED_HOST_BACKEND_H_

#include <memory>

#include "nn_worker/backend/backend.h"
#include "nn_worker/device/host/host_device.h"
#include "nn_worker/products/testing/kernel_planner.h"

namespace satrap {

std::unique_ptr<Backend> NewPlannedHostBackend(const HostDeviceOptions& options,
                                               Refusal refusal = {}, PlannerLog* log = nullptr);

// Returns a function that refuses epilogue e (ProductEpilogue) if bit e of `pattern` is set, and
// results of 16 bits if bit kNumEpilogues is set. It refuses with NOT_FOUND, as a library does.
inline constexpr unsigned kNumEpilogues = 3;
inline constexpr unsigned kEpiloguePatterns = 1u << kNumEpilogues;
inline constexpr unsigned kRefusalPatterns = kEpiloguePatterns << 1;
Refusal RefusesPattern(unsigned pattern);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_PLANNED_HOST_BACKEND_H_
