// The sums of the rows of several inputs, and their gradient; and sums of products of all pairs of
// them: factorization machines (Rendle, "Factorization Machines" (2010), lemma 3.1), and the
// bi-interaction, which keeps the columns apart (He and Chua, "Neural Factorization Machines"
// (2017), equation 4).
//
// A row is summed by a fixed number of lanes in a fixed order, and inputs are added in the order of
// their list, so the bits of a row depend on its values alone.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_ROW_SUM_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_ROW_SUM_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// A gradient of RowSumGrad. Lists of these and of inputs lie in device memory, so that any number
// fits into a launch.
struct RowSumTarget {
  Values dx;
  int64_t add;  // 1: += instead of =
};

// y[i, 0] = the sum of all elements of row i of all inputs.
//   inputs: [num_inputs] in device memory   y: (rows, 1)
void RowSum(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values y);
// Every element of row i of every target gets dy[i, 0]. `max_cols`: of any target
void RowSumGrad(DeviceStream* stream, ConstValues dy, const RowSumTarget* targets, int num_targets,
                int64_t max_cols);

// s = sum_f x_f; y[i, 0] = 1/2 sum_d (s_d^2 - sum_f x_fd^2).   s and all inputs: (rows, d)
void Fm(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values s, Values y);
// As Fm, without the sum over d.   s, y: (rows, d)
void BiInteraction(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values s,
                   Values y);

// The gradient that inputs [first, first + count) of a list share.
struct FmGradTarget {
  Values dx;
  int32_t first;
  int32_t count;
  int64_t add;
};
// dx = the sum over the target's inputs of dy (s - x), rounded once; with `add`, this is added to
// dx.
//   dy: (rows, 1), of Fm, or (rows, d), of BiInteraction
void FmGrad(DeviceStream* stream, const ConstValues* inputs, const FmGradTarget* targets,
            int num_targets, ConstValues s, ConstValues dy);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_ROW_SUM_H_
