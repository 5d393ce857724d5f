// Implements NewNcclReduction for builds without a CUDA toolkit.

#include "nn_worker/collective/nccl_collective.h"

namespace satrap {

absl::Status CheckNccl(const std::string& /*library*/) {
  return absl::UnimplementedError(
      "cannot train on a GPU: this program was built without CUDA; run ./setup cuda, and build it "
      "again");
}

absl::StatusOr<std::unique_ptr<DeviceReduction>> NewNcclReduction(
    const NcclOptions& options, RendezvousStore* /*store*/, absl::FunctionRef<bool()> /*aborted*/) {
  return CheckNccl(options.library);
}

}  // namespace satrap
