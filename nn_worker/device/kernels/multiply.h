// Products with a factor or with other values, element by element, and transposes of matrices that
// are stored in rows. Nothing is summed, except that `add` adds to the target.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_MULTIPLY_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_MULTIPLY_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// y = factor * x; with `add`, y += factor * x. y may be x.   x, y: (n, cols)
void ScaleValues(DeviceStream* stream, float factor, ConstValues x, Values y, bool add);

// y = a * b; with `add`, y += a * b. y may be a.   a, y: (n, cols)
//   b: (n, cols); or (n, 1), which multiplies all of row i; or (1, width), which multiplies each
//      group of `width` values of every row. REQUIRES: `width` divides cols
void MultiplyValues(DeviceStream* stream, ConstValues a, ConstValues b, Values y, bool add);

// Each row of x is a matrix (x.cols / width, width), stored by rows. Its transpose is written to
// the same row of y or, with `add`, added to it.   x, y: (n, cols)
void TransposeRows(DeviceStream* stream, ConstValues x, int64_t width, Values y, bool add);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_MULTIPLY_H_
