// Biases and activations, element by element, and the gradients of activations.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_ACTIVATION_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_ACTIVATION_H_

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {

// y = f(x + bias). y may be x. bias: (1, cols), or without data for no bias
void BiasActivate(DeviceStream* stream, ConstValues x, ConstValues bias, Activation activation,
                  Values y);
// dx = dy f'(x), from y = f(x); with `add`, dx += dy f'(x). dx may be dy.
void ActivateGrad(DeviceStream* stream, Activation activation, ConstValues y, ConstValues dy,
                  Values dx, bool add);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_ACTIVATION_H_
