#include "nn_worker/optimizer/adagrad.h"

#include "common/base/check.h"

namespace satrap {
namespace {

class Adagrad final : public DenseOptimizer {
 public:
  explicit Adagrad(const DenseOptimizerConfig::Adagrad& config) : config_(config) {}

  std::vector<std::string> slot_names() const override { return {"adagrad.a"}; }
  float initial_value(int) const override { return config_.initial_accumulator(); }
  void Step(Backend* backend, Tensor control, float l2, Tensor gradient, Tensor w,
            absl::Span<const Tensor> slots) const override {
    CHECK(slots.size() == 1);
    backend->AdagradStep(control, l2, config_.epsilon(), gradient, w, slots[0]);
  }

 private:
  const DenseOptimizerConfig::Adagrad config_;
};

}  // namespace

std::unique_ptr<const DenseOptimizer> NewAdagrad(const DenseOptimizerConfig::Adagrad& config) {
  return std::make_unique<Adagrad>(config);
}

}  // namespace satrap
