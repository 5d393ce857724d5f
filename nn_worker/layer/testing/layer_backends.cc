// The backends that need no card, for tests of layers.

#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/backend/testing/planned_host_backend.h"
#include "nn_worker/backend/testing/reference_backend.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {

std::vector<LayerBackend> LayerBackends() {
  HostDeviceOptions options;
  options.order = {host::ExecutionOrder::kSeeded, 1};
  return {{"Cpu", [] { return NewCpuBackend(1); }},
          {"Reference", [] { return NewReferenceBackend(); }},
          {"HostDevice", [options] { return NewHostDeviceBackend(options); }},
          {"HostDeviceWithPlans", [options] { return NewPlannedHostBackend(options); }}};
}

}  // namespace satrap
