// Adds up the results of products over pieces of their terms, in the order of the pieces.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_ADD_PIECES_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_ADD_PIECES_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/matrix.h"

namespace satrap {

// sum[i, j] = ((pieces[0, i, j] + pieces[1, i, j]) + pieces[2, i, j]) + ...
//   pieces: (num_pieces, sum.rows, sum.cols) without gaps   REQUIRES: num_pieces >= 1
void AddPieces(DeviceStream* stream, const float* pieces, int64_t num_pieces, Matrix<float> sum);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_ADD_PIECES_H_
