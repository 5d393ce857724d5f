#include "nn_worker/optimizer/adagrad.h"

#include "absl/strings/str_cat.h"
#include "common/check.h"

namespace satrap {
namespace {

class Adagrad final : public DenseOptimizer {
 public:
  explicit Adagrad(const DenseOptimizerConfig::Adagrad& config) : config_(config) {}

  std::vector<std::string> slot_names() const override { return {"adagrad.a"}; }
  float initial_value(int) const override { return config_.initial_accumulator(); }
  void Step(Backend* backend, int64_t, const UpdateCoefficients& coefficients, Tensor gradient,
            Tensor w, absl::Span<const Tensor> slots) const override {
    CHECK(slots.size() == 1);
    backend->AdagradStep(coefficients, config_.epsilon(), gradient, w, slots[0]);
  }

 private:
  const DenseOptimizerConfig::Adagrad config_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const DenseOptimizer>> NewAdagrad(
    const DenseOptimizerConfig::Adagrad& config) {
  if (!(config.initial_accumulator() >= 0) || !(config.epsilon() >= 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dense_optimizer.adagrad: initial_accumulator and epsilon must be at least 0, got ",
        config.initial_accumulator(), " and ", config.epsilon()));
  }
  return std::make_unique<Adagrad>(config);
}

}  // namespace satrap
