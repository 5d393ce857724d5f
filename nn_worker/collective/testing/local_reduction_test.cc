#include "nn_worker/collective/testing/local_reduction.h"

#include "nn_worker/collective/testing/device_reduction_conformance.h"
#include "nn_worker/device/host/host_device.h"

namespace satrap {
namespace {

INSTANTIATE_TEST_SUITE_P(Local, DeviceReductionConformance,
                         testing::Values(ReductionRanks{
                             [] { return 3; }, /*notices_lost_peers=*/true,
                             /*same_bits_on_every_run=*/true, [](int) { return NewHostDevice({}); },
                             &NewLocalReductions}));

}  // namespace
}  // namespace satrap
