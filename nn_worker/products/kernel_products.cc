#include "nn_worker/products/kernel_products.h"

#include "nn_worker/device/kernels/matrix_product.h"

namespace satrap {
namespace {

class KernelProducts final : public Products {
 public:
  void Linear(DeviceStream* stream, ConstValues x, ConstValues w, ConstValues bias,
              Activation activation, Values y) override {
    MatrixProduct product = {FactorOf(x), FactorOf(w), y, x.cols};
    product.bias = bias;
    product.activation = activation;
    Multiply(stream, product);
  }
  void InputGradient(DeviceStream* stream, ConstValues dz, ConstValues w, Values dx,
                     bool add) override {
    MatrixProduct product = {FactorOf(dz), Transposed(w), dx, dz.cols};
    product.add = add;
    Multiply(stream, product);
  }
  // Each sum is over all samples, and dw is small, so the sums must be divided into pieces to use a
  // whole card.
  void WeightGradient(DeviceStream* stream, ConstValues x, ConstValues dz, Matrix<float> dw,
                      int64_t piece, void* workspace) override {
    MultiplyInPieces(stream, {Transposed(x), FactorOf(dz), dw, x.rows},
                     static_cast<float*>(workspace), piece);
  }
  bool has_library() const override { return false; }
  absl::StatusOr<std::unique_ptr<ProductPlan>> Plan(const ProductSpec&) override { return nullptr; }
  int64_t PlanWorkspaceBytes() const override { return 0; }
};

}  // namespace

std::unique_ptr<Products> NewKernelProducts() { return std::make_unique<KernelProducts>(); }

}  // namespace satrap
