#include "nn_worker/optimizer/sgd.h"

namespace satrap {
namespace {

class Sgd final : public DenseOptimizer {
 public:
  std::vector<std::string> slot_names() const override { return {}; }
  float initial_value(int) const override { return 0; }
  void Step(Backend* backend, Tensor control, float l2, Tensor gradient, Tensor w,
            absl::Span<const Tensor>) const override {
    backend->SgdStep(control, l2, gradient, w);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<const DenseOptimizer>> NewSgd() { return std::make_unique<Sgd>(); }

}  // namespace satrap
