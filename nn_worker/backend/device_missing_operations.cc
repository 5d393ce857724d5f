#include "nn_worker/backend/device_missing_operations.h"

#include "common/base/check.h"

namespace satrap {

void DeviceMissingOperations::Miss(absl::string_view operation) {
  CHECK(false) << operation << " has no kernel for devices; train this model on the CPU";
}

}  // namespace satrap
