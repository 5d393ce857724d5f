// The linear layers of a DeviceBackend. A plan of a vendor's library computes a product, if the
// layer was prepared and the library has a plan. Otherwise our own kernel computes the product
// (nn_worker/products/products.h). Kernels before or after the product do what the plan does not
// include: bias and activation, the activation's gradient, the bias gradient.
//
//   forward           asks for bias and ReLU within the product. In 16 bits, if the plan has
//                     neither, sums are written to f32 scratch memory, so that the result is
//                     rounded once
//   input gradient    the bare product
//   weight gradient   the products of pieces of the samples (WeightGradientPiece), in scratch
//                     memory, which a kernel adds in order
//
// The library may grant or refuse each of these requests separately. Our own kernel grants none of
// them. A plan works for all numbers of samples. Our own kernel computes the gradients of the
// activation and of the bias in one pass, because a library needs more time to compute them within
// a product. Layers of one output have their own kernels. If LinearSpec.input_relu allows it, their
// backward pass also computes those two gradients for the layer before.
//
// Plans multiply and write padding (tensor.h) in every dimension where all tensors have it. Our own
// kernels leave padding out. In both cases the padding of a gradient is 0, unless a value next to
// it is not finite.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_LINEAR_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_LINEAR_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn_worker/backend/device/device_transfers.h"
#include "nn_worker/backend/linear_operations.h"
#include "nn_worker/products/products.h"

namespace satrap {

class PlannedLinear;

class DeviceLinear {
 public:
  // `transfers` must outlive this object. Destroy this object only when no operation is enqueued.
  DeviceLinear(std::unique_ptr<Products> products, DeviceTransfers* transfers)
      : products_(std::move(products)), transfers_(*transfers) {}

  // As in linear_operations.h.
  void Linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
              const Tensor& y);
  void LinearGrad(const LinearGradArgs& args);
  absl::StatusOr<std::unique_ptr<PreparedLinear>> Prepare(const LinearSpec& spec);
  void Forward(PreparedLinear* layer, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y);
  void Backward(PreparedLinear* layer, const LinearGradArgs& args);

 private:
  // If possible, lets this layer of one output also compute the gradients of the ReLU and of the
  // bias of the layer before it.
  static void TakeReluAlong(PlannedLinear* layer);
  absl::Status PlanForward(PlannedLinear* layer);
  absl::Status PlanInputGradient(PlannedLinear* layer);
  absl::Status PlanWeightGradient(PlannedLinear* layer);
  absl::StatusOr<std::unique_ptr<ProductPlan>> Plan(ProductSpec product, ProductEpilogue epilogue);
  absl::Status ReserveScratch(const PlannedLinear& layer);

  void Run(ProductPlan* plan, int64_t samples, const ProductBuffers& buffers) {
    plan->Run(transfers_.stream(), samples, buffers, workspace_);
  }
  // Replaces dy by the gradient before the activation, and computes db.
  void ActivationAndBiasGradient(const LinearGradArgs& args);
  // LinearGrad for a layer of one output. If `input_relu` is not null, also computes the gradients
  // of that layer's activation and bias.
  void OneOutputGrad(const LinearGradArgs& args, const PlannedLinear* input_relu);
  void InputGradient(const LinearGradArgs& args);
  void WeightGradient(int64_t piece, const LinearGradArgs& args);
  void PlannedWeightGradient(const PlannedLinear& layer, const LinearGradArgs& args);

  const std::unique_ptr<Products> products_;
  DeviceTransfers& transfers_;
  void* workspace_ =
      nullptr;  // of all plans, which run one after another; allocated with the first
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_LINEAR_H_
