// Linear layers of one output, such as the logit of a network. Such a layer does only two
// operations for each value of x, so its speed depends on reading x only once.
//
// Order. In the forward pass 8 lanes share a sample: lane l adds the products of columns 8 l to 8 l
// + 7, then of columns 64 + 8 l to 64 + 8 l + 7, and so on; the lanes' sums are added by a tree. In
// the backward pass the sums over samples are added in the order of ColumnSum (column_sum.h) for a
// matrix of x's shape. So bits depend only on the values and on the shape, not on types or
// alignment, and they are the same whatever else is computed in the same pass.
//
// All products and sums are f32, and every result is rounded once.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_ONE_OUTPUT_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_ONE_OUTPUT_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/column_sum.h"
#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {

// y = activation(x w + bias). x may have no columns.
//   x: (n, in)   w: (in, 1)   bias: (1, 1), or without data   y: (n, 1)
void OneOutputForward(DeviceStream* stream, ConstValues x, ConstValues w, ConstValues bias,
                      Activation activation, Values y);

// The results of OneOutputBackward, computed in one pass over x. A result without data is not
// computed.
struct OneOutputGradient {
  ConstValues x;     // (n, in); need not have data if neither dw nor relu_of_x is wanted
  ConstValues w;     // (in, 1); need not have data if dx is not wanted
  ConstValues dz;    // (n, 1), the gradient before the layer's activation
  Values dx;         // (n, in): dx = dz w^T
  bool add = false;  // dx += dz w^T instead. REQUIRES: dx
  // x is the output of a ReLU, and dx gets the gradient of the ReLU's input: it becomes 0 where x
  // is not positive, after everything has been added.
  bool relu_of_x = false;
  Matrix<float> dw = {};  // (in, 1), any stride: dw = x^T dz
  float* db = nullptr;    // [1]: the sum of dz
  // [in]: the sums of the columns of the rounded dx, with the bits of ColumnSum. They are the
  // gradient of the bias of the layer that computed x. REQUIRES: dx
  float* input_bias_gradient = nullptr;
};

// The number of values of `partials` that OneOutputBackward needs for n samples.
inline int64_t OneOutputPartials(int64_t n, int64_t in) {
  return ColumnTiles(in).Pieces(n) * (2 * in + 1);
}

//   partials: [OneOutputPartials(n, in)], overwritten; null if only dx is wanted
void OneOutputBackward(DeviceStream* stream, const OneOutputGradient& gradient, float* partials);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_ONE_OUTPUT_H_
