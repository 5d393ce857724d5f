// What the operations of a Backend (backend.h) take besides tensors.

#ifndef SATRAP_NN_WORKER_BACKEND_OPERATION_ARGS_H_
#define SATRAP_NN_WORKER_BACKEND_OPERATION_ARGS_H_

#include "nn_worker/backend/tensor.h"

namespace satrap {

enum class Activation { kLinear, kRelu, kSigmoid, kTanh };
enum class SequencePooling { kMean, kSum, kMax };

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

// The coefficients of one optimizer operation. They follow from the configuration and the step of
// the job (DenseStep, optimizer/dense_optimizer.h). The normalised gradient of docs/glossary.md is
// g = gradient * scale + l2 * w.
struct UpdateCoefficients {
  float learning_rate = 0;
  float scale = 1;  // 1 / the step's normalizer
  float l2 = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_OPERATION_ARGS_H_
