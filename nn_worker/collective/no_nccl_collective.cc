// NewNcclReduction of a build without a toolkit.

#include "nn_worker/collective/nccl_collective.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<DeviceReduction>> NewNcclReduction(
    const NcclOptions& /*options*/, RendezvousStore* /*store*/,
    absl::FunctionRef<bool()> /*aborted*/) {
  return absl::UnimplementedError(
      "cannot train on a GPU: this program was built without CUDA; run ./setup cuda, and build it "
      "again");
}

}  // namespace satrap
