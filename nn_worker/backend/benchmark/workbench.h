// Makes the tensors with which one operation of a Backend is measured. They belong to the backend.
//
// Values are random in [-1, 1) and the same in every run. They are not zeros, because a card
// multiplies zeros with less power, and therefore faster. Rows of samples are padded like a
// network's activations.
//
// If memory runs out, a CHECK fails and says how much was requested. Thread-compatible.

#ifndef SATRAP_NN_WORKER_BACKEND_BENCHMARK_WORKBENCH_H_
#define SATRAP_NN_WORKER_BACKEND_BENCHMARK_WORKBENCH_H_

#include <cstdint>
#include <vector>

#include "nn_worker/backend/backend.h"

namespace satrap {

class Workbench {
 public:
  // `values`: the dtype of activations and their gradients. `backend` outlives this object.
  Workbench(Backend* backend, int64_t samples, DType values);

  Backend* backend() const { return backend_; }
  int64_t samples() const { return samples_; }

  // Tensors (samples, cols). Values() has the dtype of the activations, and F32Values() is F32.
  Tensor Values(int64_t cols) { return Padded(values_, cols); }
  Tensor F32Values(int64_t cols) { return Padded(DType::kF32, cols); }
  // Like Values() and Weights(), with the padding that products of prepared layers make use of.
  Tensor ValuesOfProducts(int64_t cols);
  Tensor WeightsOfProducts(int64_t rows, int64_t cols);
  // Like Weights(), but always F32, as the gradients of parameters are.
  Tensor GradientsOfProducts(int64_t rows, int64_t cols);
  // The bias of such a layer, (1, cols). It has the dtype of the outputs if that is a 16-bit type
  // which the backend accepts for biases; otherwise it is F32.
  Tensor BiasOfProducts(DType outputs, int64_t cols);
  // `count` tensors (samples, cols) side by side in one block, like the inputs of a concatenation.
  std::vector<Tensor> Fields(int64_t count, int64_t cols);
  // F32 tensors without gaps. Filled() sets all values to `value`.
  Tensor Floats(int64_t rows, int64_t cols) { return Tight(DType::kF32, rows, cols); }
  Tensor Filled(int64_t rows, int64_t cols, float value);
  // A tensor of F32, F16 or BF16 without gaps, like the rows of a table on the wire.
  Tensor Tight(DType dtype, int64_t rows, int64_t cols);
  // F64 (1, cols), zeros.
  Tensor Doubles(int64_t cols);
  // A weight matrix in the form that products read: F32 without gaps, or a padded copy in the
  // activations' dtype.
  Tensor Weights(int64_t rows, int64_t cols);
  Tensor Indices(const std::vector<uint32_t>& indices, int64_t rows, int64_t cols);
  // The StepControl of a step that applies.
  Tensor Control();

 private:
  Tensor New(DType dtype, int64_t rows, int64_t cols, int64_t stride = 0);
  Tensor Padded(DType dtype, int64_t cols);
  // A tensor (rows, cols) within a tensor of (rows + padding, cols + padding); its padding is 0.
  Tensor WithPadding(DType dtype, int64_t rows, int64_t cols, int64_t padded_rows, int64_t stride);
  int64_t PaddedRows(int64_t rows) const { return rows > 1 ? backend_->PaddedWidth(rows) : rows; }
  void FillWithRandom(const Tensor& tensor);

  Backend* const backend_;
  const int64_t samples_;
  const DType values_;
  Tensor pattern_;  // F32 (1, any): repeated to fill tensors
};

// Gradient targets that assign to `tensors` instead of adding to them.
std::vector<GradientTarget> TargetsOf(const std::vector<Tensor>& tensors);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BENCHMARK_WORKBENCH_H_
