// The activations of nn_worker/backend/backend.h, for a single value. For kernel sources.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_ACTIVATION_FUNCTION_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_ACTIVATION_FUNCTION_H_

#include "nn_worker/device/kernel.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {

// Applies exp only to values that are not positive, so it cannot overflow.
SATRAP_DEVICE inline float Sigmoid(float x) {
  if (x >= 0) return 1.0f / (1.0f + Exp(-x));
  const float e = Exp(x);
  return e / (1.0f + e);
}

// f(x). A NaN stays a NaN, so that the finite check finds it. Therefore ReLU is not Max(x, 0),
// which drops a NaN.
SATRAP_DEVICE inline float Activated(Activation activation, float x) {
  switch (activation) {
    case Activation::kLinear:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kSigmoid:
      return Sigmoid(x);
    case Activation::kTanh:
      return Tanh(x);
  }
  return x;
}

// dy f'(x), from y = f(x).
SATRAP_DEVICE inline float ActivationGradient(Activation activation, float y, float dy) {
  switch (activation) {
    case Activation::kLinear:
      return dy;
    case Activation::kRelu:
      return y > 0 ? dy : 0;
    case Activation::kSigmoid:
      return dy * y * (1 - y);
    case Activation::kTanh:
      return dy * (1 - y * y);
  }
  return dy;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_ACTIVATION_FUNCTION_H_
