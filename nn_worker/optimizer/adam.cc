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
  void Step(Backend* backend, int64_t step, const UpdateCoefficients& coefficients, Tensor gradient,
            Tensor w, absl::Span<const Tensor> slots) const override {
    CHECK(slots.size() == 2);
    const double t = static_cast<double>(step) + 1;
    Backend::AdamArgs args;
    args.beta1 = config_.beta1();
    args.beta2 = config_.beta2();
    args.epsilon = config_.epsilon();
    args.correction1 = static_cast<float>(1 - std::pow(static_cast<double>(args.beta1), t));
    args.correction2 = static_cast<float>(1 - std::pow(static_cast<double>(args.beta2), t));
    backend->AdamStep(coefficients, args, gradient, w, slots[0], slots[1]);
  }

 private:
  const DenseOptimizerConfig::Adam config_;
};

}  // namespace

std::unique_ptr<const DenseOptimizer> NewAdam(const DenseOptimizerConfig::Adam& config) {
  return std::make_unique<Adam>(config);
}

}  // namespace satrap
