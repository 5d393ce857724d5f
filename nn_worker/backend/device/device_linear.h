// The linear layers of a DeviceBackend. A plan of a vendor's library computes a product, if the
// layer was prepared and the library has a plan; otherwise our own kernel does
// (nn_worker/products/products.h). Kernels before or after the product do what the plan does not
// include: bias and activation, the activation's gradient, the bias gradient.
//
//   forward           asks for bias and ReLU within the product. In 16 bits, if the plan has
//                     neither, sums are written to f32 scratch memory, so that the result is
//                     rounded once
//   input gradient    asks for the previous layer's ReLU, if that layer's product writes the mask
//   weight gradient   asks for the bias gradient
//
// The library may grant or refuse each of these requests separately. Our own kernel grants none of
// them. A plan works for all numbers of samples.
//
// Plans multiply and write padding (tensor.h) in every dimension where all tensors have it. Our own
// kernels leave it out. Whichever of them write a gradient, its padding is 0 unless a value beside
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
  // `transfers` must outlive this object. Destroy it only when no operation is enqueued.
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
  absl::Status PlanForward(PlannedLinear* layer);
  absl::Status PlanInputGradient(PlannedLinear* layer, PlannedLinear* input_relu);
  absl::Status PlanWeightGradient(PlannedLinear* layer);
  // Makes the forward product of a layer write the mask of its ReLU. False if no plan does that.
  absl::StatusOr<bool> PlanMask(PlannedLinear* layer);
  absl::StatusOr<std::unique_ptr<ProductPlan>> Plan(ProductSpec product, ProductEpilogue epilogue);
  absl::Status ReserveScratch(const LinearSpec& spec);

  void Run(ProductPlan* plan, int64_t samples, const ProductBuffers& buffers) {
    plan->Run(transfers_.stream(), samples, buffers, workspace_);
  }
  void ColumnSum(const Tensor& x, const Tensor& sums);
  void InputGradient(const LinearGradArgs& args);
  void WeightGradient(const LinearGradArgs& args);

  const std::unique_ptr<Products> products_;
  DeviceTransfers& transfers_;
  void* workspace_ =
      nullptr;  // of all plans, which run one after another; allocated with the first
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_LINEAR_H_
