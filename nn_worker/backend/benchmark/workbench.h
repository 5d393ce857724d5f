// The tensors that one operation of a Backend is measured with. They belong to the backend.
//
// Values are random in [-1, 1), the same in every run: a card multiplies zeros with less power, and
// so faster. Rows of samples are padded as those of a network's activations.
//
// Running out of memory fails a CHECK that says how much was asked for. Thread-compatible.

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

  // (samples, cols) of the activations' dtype, or of F32.
  Tensor Values(int64_t cols) { return Padded(values_, cols); }
  Tensor F32Values(int64_t cols) { return Padded(DType::kF32, cols); }
  // `count` tensors (samples, cols) side by side in one block, as the inputs of a concatenation
  // lie.
  std::vector<Tensor> Fields(int64_t count, int64_t cols);
  // F32 without gaps; filled with `value`.
  Tensor Floats(int64_t rows, int64_t cols);
  Tensor Filled(int64_t rows, int64_t cols, float value);
  // F64 (1, cols), zeros.
  Tensor Doubles(int64_t cols);
  // A weight matrix as products read it: F32 without gaps, or a padded copy of the activations'
  // dtype.
  Tensor Weights(int64_t rows, int64_t cols);
  Tensor Indices(const std::vector<uint32_t>& indices, int64_t rows, int64_t cols);
  // A StepControl that applies.
  Tensor Control();

 private:
  Tensor New(DType dtype, int64_t rows, int64_t cols, int64_t stride = 0);
  Tensor Padded(DType dtype, int64_t cols);
  void FillWithRandom(const Tensor& tensor);

  Backend* const backend_;
  const int64_t samples_;
  const DType values_;
  Tensor pattern_;  // F32 (1, any): what tensors are filled with, again and again
};

// `tensors` as targets that are assigned.
std::vector<GradientTarget> TargetsOf(const std::vector<Tensor>& tensors);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BENCHMARK_WORKBENCH_H_
