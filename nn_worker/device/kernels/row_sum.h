// Computes the sums of the rows of several inputs, and the gradient of these sums. Also computes
// sums of the products of all pairs of inputs: factorization machines (Rendle, "Factorization
// Machines" (2010), lemma 3.1), and the bi-interaction, which does not add up the columns (He and
// Chua, "Neural Factorization Machines" (2017), equation 4).
//
// A row is summed by a fixed number of lanes in a fixed order, and inputs are added in the order of
// their list, so the bits of a row depend only on its values.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_ROW_SUM_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_ROW_SUM_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// A gradient of RowSumGrad. Lists of targets and of inputs are in device memory, so that one launch
// can have any number of them.
struct RowSumTarget {
  Values dx;
  int64_t add;  // 1: += instead of =
};

// y[i, 0] = the sum of all elements of row i of all inputs.
//   inputs: [num_inputs] in device memory   y: (rows, 1)
void RowSum(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values y);
// Assigns dy[i, 0] to every element of row i of every target, or adds it. `max_cols`: the largest
// number of columns of a target
void RowSumGrad(DeviceStream* stream, ConstValues dy, const RowSumTarget* targets, int num_targets,
                int64_t max_cols);

// s = sum_f x_f; y[i, 0] = 1/2 sum_d (s_d^2 - sum_f x_fd^2).   s and all inputs: (rows, d)
void Fm(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values s, Values y);
// Like Fm, but without the sum over d.   s, y: (rows, d)
void BiInteraction(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values s,
                   Values y);

// One gradient, which inputs [first, first + count) of a list share.
struct FmGradTarget {
  Values dx;
  int32_t first;
  int32_t count;
  int64_t add;
};
// dx = the sum of dy (s - x) over the target's inputs, rounded once; with `add`, this is added to
// dx.
//   dy: (rows, 1) for Fm, or (rows, d) for BiInteraction
void FmGrad(DeviceStream* stream, const ConstValues* inputs, const FmGradTarget* targets,
            int num_targets, ConstValues s, ConstValues dy);

// Whether every row of `x` can be divided into accesses of 16 bytes.
inline bool HasWideRows(const ConstValues& x) {
  const int64_t values = 16 / ElementBytes(x.type);
  return reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && x.cols % values == 0 &&
         (x.rows <= 1 || x.stride % values == 0);
}

// Like Fm and FmGrad, with accesses of 16 bytes and the same bits. A target has one input.
// REQUIRES: all inputs and gradients have type `type` and wide rows
struct WideFmGradTarget {
  const void* x;
  int64_t x_stride;
  void* dx;
  int64_t dx_stride;
  int64_t add;
};
void WideFm(DeviceStream* stream, const ConstValues* inputs, int num_inputs, ElementType type,
            Values s, Values y);
void WideFmGrad(DeviceStream* stream, const WideFmGradTarget* targets, int num_targets,
                ElementType type, ConstValues s, ConstValues dy);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_ROW_SUM_H_
