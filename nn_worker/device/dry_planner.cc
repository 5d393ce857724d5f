#include "nn_worker/device/dry_planner.h"

namespace satrap {
namespace {

class DryPlan final : public ProductPlan {
 public:
  void Run(DeviceStream* /*stream*/, int64_t /*samples*/, const ProductBuffers& /*buffers*/,
           void* /*workspace*/) override {}
};

class DryPlanner final : public ProductPlanner {
 public:
  int64_t workspace_bytes() const override { return kMostPlanWorkspaceBytes; }
  absl::StatusOr<std::unique_ptr<ProductPlan>> Prepare(const ProductSpec& /*spec*/) override {
    return std::make_unique<DryPlan>();
  }
};

}  // namespace

std::unique_ptr<ProductPlanner> NewDryPlanner() { return std::make_unique<DryPlanner>(); }

}  // namespace satrap
