// y = x, byte by byte, whatever type the values have.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_COPY_ROWS_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_COPY_ROWS_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"

namespace satrap {

// Rows of `row_bytes` bytes in device memory; a row begins `stride` bytes after the previous one.
template <typename Byte>
struct ByteRows {
  Byte* data;
  int64_t stride;
};

// Copies `rows` rows. x and y do not overlap.
void CopyRows(DeviceStream* stream, ByteRows<const uint8_t> x, ByteRows<uint8_t> y, int64_t rows,
              int64_t row_bytes);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_COPY_ROWS_H_
