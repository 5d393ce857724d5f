// The matrix products of linear layers on a device. They are separate from Device, because a
// vendor's library does most of them on a card. Our own (kernel_products.h) make any product on
// every device. Those of a library (library_products.h) are planned before the first sample, for
// the layers that are known by then.
//
// Their results and limits are those of Linear and LinearGrad in
// nn_worker/backend/linear_operations.h: a row of a result depends only on the same row of the
// inputs, zero rows and zero inputs are legal, and the same arguments give the same bits.
// Operations are enqueued on the stream.
//
// Each of the samples' values, their gradients and `w` may have 16 bits, whatever the others have.
// Products are summed in f32 and rounded once; weight gradients are f32.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_PRODUCTS_PRODUCTS_H_
#define SATRAP_NN_WORKER_PRODUCTS_PRODUCTS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/device/product_plan.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {

class Products {
 public:
  virtual ~Products() = default;

  // y = activation(x w + bias).   x: (n, in)  w: (in, out)  bias: [out], null: none   y: (n, out)
  virtual void Linear(DeviceStream* stream, ConstValues x, ConstValues w, const float* bias,
                      Activation activation, Values y) = 0;
  // dx = dz w^T; with `add`, dx += dz w^T.   dz: (n, out)  dx: (n, in)
  virtual void InputGradient(DeviceStream* stream, ConstValues dz, ConstValues w, Values dx,
                             bool add) = 0;
  // dw = x^T dz.   dw: (in, out) without gaps
  //   workspace: WeightGradientWorkspace bytes of device memory, aligned to 64, overwritten
  virtual void WeightGradient(DeviceStream* stream, ConstValues x, ConstValues dz, Matrix<float> dw,
                              void* workspace) = 0;
  virtual int64_t WeightGradientWorkspace(int64_t n, int64_t in, int64_t out) const = 0;

  // The library's plan of a product. Null if there is no library, if it does not take the product,
  // or if the product is not for a library (ForLibrary): use the operations above then. The plan is
  // destroyed before this object. INTERNAL if the library fails.
  virtual absl::StatusOr<std::unique_ptr<ProductPlan>> Plan(const ProductSpec& spec) = 0;
  virtual int64_t PlanWorkspaceBytes() const = 0;  // for ProductPlan::Run
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_PRODUCTS_PRODUCTS_H_
