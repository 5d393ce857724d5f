// The sums of the rows of several inputs, and their gradient; and factorization machines over them,
// which are sums of rows, too (Rendle, "Factorization Machines" (2010), lemma 3.1).
//
// A row is summed by a fixed number of lanes in a fixed order, so its bits depend on its values
// alone.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_ROW_SUM_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_ROW_SUM_H_

#include <cstdint>

#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/device/stream.h"

namespace satrap {

// One input, or the gradient of one. Lists of them lie in device memory, so that any number fits
// into a launch.
template <typename T>
struct RowSumInput {
  T* data;
  int64_t stride;
  int32_t cols;
  bool aligned;  // GroupsAligned (elementwise.h)
  bool add;      // of a gradient: += instead of =
};

// An input and its gradient.
struct FmGradInput {
  RowSumInput<const float> x;
  RowSumInput<float> dx;
};

// y[i, 0] = the sum of all elements of row i of all inputs.
//   inputs: [num_inputs] in device memory   y: (rows, 1)
void RowSum(Stream* stream, const RowSumInput<const float>* inputs, int num_inputs,
            Matrix<float> y);
// Every element of row i of every input gets dy[i, 0]. `max_cols`: of any input
void RowSumGrad(Stream* stream, Matrix<const float> dy, const RowSumInput<float>* inputs,
                int num_inputs, int64_t max_cols);

// s = sum_f x_f; y[i, 0] = 1/2 sum_d (s_d^2 - sum_f x_fd^2).   s: (rows, d), all inputs as wide
void Fm(Stream* stream, const RowSumInput<const float>* inputs, int num_inputs, Matrix<float> s,
        Matrix<float> y);
// dx_f = dy (s - x_f).
void FmGrad(Stream* stream, const FmGradInput* inputs, int num_inputs, Matrix<const float> s,
            Matrix<const float> dy);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_ROW_SUM_H_
