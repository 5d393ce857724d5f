#include "nn_worker/products/kernel_products.h"

#include "nn_worker/device/kernels/matrix_product.h"
#include "nn_worker/device/kernels/one_output.h"

namespace satrap {
namespace {

class KernelProducts final : public Products {
 public:
  void Linear(DeviceStream* stream, ConstValues x, ConstValues w, ConstValues bias,
              Activation activation, Values y) override {
    if (w.cols == 1) return OneOutputForward(stream, x, w, bias, activation, y);
    MatrixProduct product = {FactorOf(x), FactorOf(w), y, x.cols};
    product.bias = bias;
    product.activation = activation;
    Multiply(stream, product);
  }
  void InputGradient(DeviceStream* stream, ConstValues dz, ConstValues w, Values dx,
                     bool add) override {
    if (w.cols == 1) {
      OneOutputGradient gradient;
      gradient.w = w;
      gradient.dz = dz;
      gradient.dx = dx;
      gradient.add = add;
      return OneOutputBackward(stream, gradient, /*partials=*/nullptr);
    }
    MatrixProduct product = {FactorOf(dz), Transposed(w), dx, dz.cols};
    product.add = add;
    Multiply(stream, product);
  }
  // Each sum is over all samples, and dw is small, so the sums must be divided into pieces to use a
  // whole card.
  void WeightGradient(DeviceStream* stream, ConstValues x, ConstValues dz, Matrix<float> dw,
                      int64_t piece, void* workspace) override {
    if (dw.cols == 1) {
      OneOutputGradient gradient;
      gradient.x = x;
      gradient.dz = dz;
      gradient.dw = dw;
      return OneOutputBackward(stream, gradient, static_cast<float*>(workspace));
    }
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
