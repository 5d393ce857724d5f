#include "nn_worker/optimizer/adam.h"

#include <cmath>

#include "common/base/check.h"

namespace satrap {
namespace {

class Adam final : public DenseOptimizer {
 public:
  explicit Adam(const DenseOptimizerConfig::Adam& config) : config_(config) {}

  std::vector<std::string> slot_names() const override { return {"adam.m", "adam.v"}; }
  float initial_value(int) const override { return 0; }
  BiasCorrections corrections(int64_t step) const override {
    const double t = static_cast<double>(step) + 1;
    return {static_cast<float>(1 - std::pow(static_cast<double>(config_.beta1()), t)),
            static_cast<float>(1 - std::pow(static_cast<double>(config_.beta2()), t))};
  }
  void Step(Backend* backend, Tensor control, float l2, Tensor gradient, Tensor w,
            absl::Span<const Tensor> slots) const override {
    CHECK(slots.size() == 2);
    const AdamArgs args = {config_.beta1(), config_.beta2(), config_.epsilon()};
    backend->AdamStep(control, l2, args, gradient, w, slots[0], slots[1]);
  }

 private:
  const DenseOptimizerConfig::Adam config_;
};

}  // namespace

std::unique_ptr<const DenseOptimizer> NewAdam(const DenseOptimizerConfig::Adam& config) {
  return std::make_unique<Adam>(config);
}

}  // namespace satrap
