// Linear layers. A layer may be prepared for the tensors that it will use. A device then chooses
// once how the layer's products are computed, and which of them include a bias, an activation or a
// gradient; the layer's operations then allocate nothing. Results are the same as without
// preparation, up to rounding.
//
// Part of Backend (backend.h), whose rules on memory, order, control, determinism and errors apply.

#ifndef SATRAP_NN_WORKER_BACKEND_LINEAR_OPERATIONS_H_
#define SATRAP_NN_WORKER_BACKEND_LINEAR_OPERATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/backend/operation_args.h"
#include "nn_worker/backend/tensor.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {

// A layer that a backend has prepared. Belongs to that backend, and must be destroyed before that
// backend.
class PreparedLinear {
 public:
  explicit PreparedLinear(Activation activation) : activation_(activation) {}
  virtual ~PreparedLinear() = default;
  PreparedLinear(const PreparedLinear&) = delete;
  PreparedLinear& operator=(const PreparedLinear&) = delete;
  Activation activation() const { return activation_; }

 private:
  const Activation activation_;
};

// The tensors of a layer, with the largest number of rows that it will get. Its operations must
// then be called with the same tensors, except that samples may be fewer and dx.add may differ.
struct LinearSpec {
  LinearGradArgs args;  // if dy is empty, there are no gradients
  Tensor bias;          // (1, out), or empty
  // The layer of the same backend whose output, after a ReLU, is x; or null. It may be set only if
  // LinearBackward of this layer is the last operation that adds to the gradient of x, and
  // LinearBackward of that layer is the only operation that reads this gradient. Between the two
  // calls the content of dx depends on the backend, and so does that of the other layer's db: the
  // gradients of the ReLU and of the bias may already have been computed.
  PreparedLinear* input_relu = nullptr;
};

class LinearOperations {
 public:
  virtual ~LinearOperations() = default;

  // Whether a bias may have the type of y if y has 16 bits; otherwise it must be F32. Within a
  // product of 16 bits, a library adds only a bias of that type, so networks should prefer that
  // type.
  virtual bool takes_rounded_biases() const { return false; }

  // y = activation(x w + bias).      x: (n, in)  w: (in, out)  bias: (1, out) or empty  y: (n, out)
  // If `in` is 0, y = activation(bias).
  virtual void Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) = 0;
  // dz = dy f'(x w + bias), where f' is computed from y; dx = dz w^T, dw = x^T dz, db = the sums of
  // dz's columns.
  virtual void LinearGrad(const LinearGradArgs& args) = 0;

  // The number of columns that a tensor of `width` values should have, padding included (tensor.h),
  // so that products of prepared layers read and write the tensor fast. This is `width` itself for
  // backends that make no use of padding.
  virtual int64_t PaddedWidth(int64_t width) const { return width; }

  // RESOURCE_EXHAUSTED if there is not enough memory; INTERNAL if a library of the device fails.
  virtual absl::StatusOr<std::unique_ptr<PreparedLinear>> PrepareLinear(const LinearSpec& spec) {
    return std::make_unique<PreparedLinear>(spec.args.activation);
  }
  // Linear and LinearGrad of a prepared layer. REQUIRES: the tensors are those of its spec
  // (LinearSpec); the last LinearForward before a LinearBackward had the same samples
  virtual void LinearForward(PreparedLinear* layer, Tensor x, Tensor w, Tensor bias, Tensor y) {
    Linear(x, w, bias, layer->activation(), y);
  }
  virtual void LinearBackward(PreparedLinear* /*layer*/, const LinearGradArgs& args) {
    LinearGrad(args);
  }
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_LINEAR_OPERATIONS_H_
