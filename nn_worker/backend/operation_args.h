// What the operations of a Backend (backend.h) take besides tensors.

#ifndef SATRAP_NN_WORKER_BACKEND_OPERATION_ARGS_H_
#define SATRAP_NN_WORKER_BACKEND_OPERATION_ARGS_H_

#include "nn_worker/backend/operation_kinds.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

// The arguments of LinearGrad; the shapes are those of Linear.
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

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_OPERATION_ARGS_H_
