// Runs the suite on DeviceBackend with 16-bit values, on the host's device in every order.

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/testing/half_conformance.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

std::vector<BackendFactory> InEveryOrder() {
  std::vector<BackendFactory> factories;
  for (const HostDeviceOptions& options : EveryOrder()) {
    factories.emplace_back([options] { return NewHostDeviceBackend(options); });
  }
  return factories;
}

INSTANTIATE_TEST_SUITE_P(HostDevice, HalfConformance, testing::ValuesIn(InEveryOrder()),
                         [](const auto& info) { return NameOf(EveryOrder()[info.index]); });

}  // namespace
}  // namespace satrap
