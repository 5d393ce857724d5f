// The arguments of a Backend's operations (backend.h) other than tensors.

#ifndef SATRAP_NN_WORKER_BACKEND_OPERATION_ARGS_H_
#define SATRAP_NN_WORKER_BACKEND_OPERATION_ARGS_H_

#include <cstdint>

#include "common/numeric/random.h"
#include "nn_worker/backend/tensor.h"
#include "nn_worker/operation/dropout_mask.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {

// The arguments of LinearGrad; shapes are as for Linear.
struct LinearGradArgs {
  Tensor x;  // (n, in)
  Tensor w;  // (in, out)
  Activation activation = Activation::kLinear;
  Tensor y;           // (n, out): Linear's output
  Tensor dy;          // (n, out): overwritten by the gradient before the activation
  GradientTarget dx;  // (n, in)
  Tensor dw;          // (in, out)
  Tensor db;          // (1, out), or empty
};

// The mask that a dropout layer uses in one pass (dropout_mask.h).
struct DropoutMask {
  uint64_t seed = 0;  // of the layer
  PassNumbers pass;
  Tensor pass_in_memory;  // the same, in the backend's memory

  uint64_t key() const { return RandomBits(seed, pass.step); }
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_OPERATION_ARGS_H_
