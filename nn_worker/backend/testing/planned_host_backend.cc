#include "nn_worker/backend/testing/planned_host_backend.h"

#include <utility>

#include "common/base/check.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/products/library_products.h"

namespace satrap {

std::unique_ptr<Backend> NewPlannedHostBackend(const HostDeviceOptions& options, Refusal refusal,
                                               PlannerLog* log) {
  auto backend = NewDeviceBackend(NewHostDevice(options),
                                  NewLibraryProducts(NewKernelPlanner(std::move(refusal), log)));
  CHECK_OK(backend.status());
  return *std::move(backend);
}

Refusal RefusesPattern(unsigned pattern) {
  return [pattern](const ProductSpec& spec) {
    const bool refused = (pattern >> static_cast<unsigned>(spec.epilogue) & 1u) != 0 ||
                         (!spec.f32_output && (pattern >> kNumEpilogues & 1u) != 0);
    return refused ? absl::NotFoundError("refused by the pattern") : absl::OkStatus();
  };
}

}  // namespace satrap
