// The activations of ReferenceBackend, in double.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_ACTIVATION_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_ACTIVATION_H_

#include <cmath>

#include "nn_worker/backend/operation_args.h"

namespace satrap::reference {

inline double Apply(Activation activation, double x) {
  switch (activation) {
    case Activation::kLinear:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
  }
  return x;
}

// f'(x), computed from y = f(x), because the backward pass has only a layer's outputs.
inline double Slope(Activation activation, double y) {
  switch (activation) {
    case Activation::kLinear:
      return 1;
    case Activation::kRelu:
      return y > 0 ? 1 : 0;
    case Activation::kSigmoid:
      return y * (1 - y);
    case Activation::kTanh:
      return 1 - y * y;
  }
  return 1;
}

}  // namespace satrap::reference

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_ACTIVATION_H_
