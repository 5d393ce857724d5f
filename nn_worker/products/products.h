// The matrix products of linear layers on a device. They are separate from Device, because on a
// card a vendor's library computes most of them. Our own kernel (kernel_products.h) computes any
// product on every device. Products by a library (library_products.h) are planned before the first
// sample, for the layers that are known by then.
//
// Results and limits are as for Linear and LinearGrad in nn_worker/backend/linear_operations.h: a
// row of a result depends only on the same row of the inputs, zero rows and zero inputs are legal,
// and the same arguments give the same bits. Operations are enqueued on the stream.
//
// The samples' values, their gradients, `w` and biases may each have 16 bits, whatever types the
// others have. Products are summed in f32 and rounded once; weight gradients are f32.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_PRODUCTS_PRODUCTS_H_
#define SATRAP_NN_WORKER_PRODUCTS_PRODUCTS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/device/kernels/matrix_product.h"
#include "nn_worker/device/kernels/one_output.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/device/product_plan.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {

class Products {
 public:
  virtual ~Products() = default;

  // y = activation(x w + bias).   x: (n, in)  w: (in, out)  y: (n, out)
  //   bias: (1, out), or without data
  virtual void Linear(DeviceStream* stream, ConstValues x, ConstValues w, ConstValues bias,
                      Activation activation, Values y) = 0;
  // dx = dz w^T; with `add`, dx += dz w^T.   dz: (n, out)  dx: (n, in)
  virtual void InputGradient(DeviceStream* stream, ConstValues dz, ConstValues w, Values dx,
                             bool add) = 0;
  // dw = x^T dz, as the sum over pieces of `piece` samples, which are added in order. A layer of
  // one output has the pieces of OneOutputBackward instead.
  //   dw: (in, out) without gaps   piece: >= 1
  //   workspace: WeightGradientWorkspace bytes of device memory, aligned to 64, overwritten
  virtual void WeightGradient(DeviceStream* stream, ConstValues x, ConstValues dz, Matrix<float> dw,
                              int64_t piece, void* workspace) = 0;
  // The bytes for n samples.
  static int64_t WeightGradientWorkspace(int64_t n, int64_t in, int64_t out, int64_t piece) {
    const int64_t partials =
        out == 1 ? OneOutputPartials(n, in) : ProductPartials(in, out, n, piece);
    return partials * static_cast<int64_t>(sizeof(float));
  }

  virtual bool has_library() const = 0;
  // The library's plan of a product. Null if there is no library, if it refuses the product, or if
  // the product is not for a library (ForLibrary); the caller then uses the operations above. The
  // plan must be destroyed before this object. INTERNAL if the library fails.
  virtual absl::StatusOr<std::unique_ptr<ProductPlan>> Plan(const ProductSpec& spec) = 0;
  virtual int64_t PlanWorkspaceBytes() const = 0;  // for ProductPlan::Run
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_PRODUCTS_PRODUCTS_H_
