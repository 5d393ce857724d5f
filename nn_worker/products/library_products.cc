#include "nn_worker/products/library_products.h"

#include <utility>

#include "nn_worker/products/kernel_products.h"

namespace satrap {
namespace {

class LibraryProducts final : public Products {
 public:
  LibraryProducts(std::unique_ptr<ProductPlanner> planner, F32Factors f32_factors)
      : planner_(std::move(planner)), f32_factors_(f32_factors), kernels_(NewKernelProducts()) {}

  void Linear(DeviceStream* stream, ConstValues x, ConstValues w, ConstValues bias,
              Activation activation, Values y) override {
    kernels_->Linear(stream, x, w, bias, activation, y);
  }
  void InputGradient(DeviceStream* stream, ConstValues dz, ConstValues w, Values dx,
                     bool add) override {
    kernels_->InputGradient(stream, dz, w, dx, add);
  }
  void WeightGradient(DeviceStream* stream, ConstValues x, ConstValues dz, Matrix<float> dw,
                      int64_t piece, void* workspace) override {
    kernels_->WeightGradient(stream, x, dz, dw, piece, workspace);
  }

  bool has_library() const override { return true; }
  absl::StatusOr<std::unique_ptr<ProductPlan>> Plan(const ProductSpec& spec) override {
    if (!ForLibrary(spec)) return nullptr;
    ProductSpec asked = spec;
    if (asked.precision == ProductPrecision::kF32 && f32_factors_ == F32Factors::kTf32) {
      asked.precision = ProductPrecision::kTf32;
    }
    auto plan = planner_->Prepare(asked);
    if (absl::IsNotFound(plan.status())) return nullptr;
    return plan;
  }
  int64_t PlanWorkspaceBytes() const override { return planner_->workspace_bytes(); }

 private:
  const std::unique_ptr<ProductPlanner> planner_;
  const F32Factors f32_factors_;
  const std::unique_ptr<Products> kernels_;
};

}  // namespace

std::unique_ptr<Products> NewLibraryProducts(std::unique_ptr<ProductPlanner> planner,
                                             F32Factors f32_factors) {
  return std::make_unique<LibraryProducts>(std::move(planner), f32_factors);
}

}  // namespace satrap
