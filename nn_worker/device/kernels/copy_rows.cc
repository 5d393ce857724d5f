#include "nn_worker/device/kernels/copy_rows.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"

namespace satrap {
namespace {

template <int kBytes>
SATRAP_KERNEL void CopyRowsKernel(ByteRows<const uint8_t> x, ByteRows<uint8_t> y, int64_t rows,
                                  int64_t units) {
  ForEachGroup(rows, units, [&](int64_t r, int64_t unit) {
    StoreVec(y.data + r * y.stride + unit * kBytes,
             LoadVec<kBytes>(x.data + r * x.stride + unit * kBytes));
  });
}

template <int kBytes>
void LaunchCopy(DeviceStream* stream, ByteRows<const uint8_t> x, ByteRows<uint8_t> y, int64_t rows,
                int64_t row_bytes) {
  const int64_t units = row_bytes / kBytes;
  const ElementwiseShape shape = ShapeOf(rows, units);
  Launch<CopyRowsKernel<kBytes>>(stream, shape.grid, shape.block, 0, x, y, rows, units);
}

}  // namespace

void CopyRows(DeviceStream* stream, ByteRows<const uint8_t> x, ByteRows<uint8_t> y, int64_t rows,
              int64_t row_bytes) {
  if (rows == 0 || row_bytes == 0) return;
  if (x.stride == row_bytes && y.stride == row_bytes) {
    row_bytes *= rows;
    rows = 1;
  }
  // Uses the widest access that divides the addresses and the lengths of all rows.
  uint64_t bits = reinterpret_cast<uintptr_t>(x.data) | reinterpret_cast<uintptr_t>(y.data) |
                  static_cast<uint64_t>(row_bytes);
  if (rows > 1) bits |= static_cast<uint64_t>(x.stride) | static_cast<uint64_t>(y.stride);
  if (bits % 16 == 0) return LaunchCopy<16>(stream, x, y, rows, row_bytes);
  if (bits % 8 == 0) return LaunchCopy<8>(stream, x, y, rows, row_bytes);
  if (bits % 4 == 0) return LaunchCopy<4>(stream, x, y, rows, row_bytes);
  if (bits % 2 == 0) return LaunchCopy<2>(stream, x, y, rows, row_bytes);
  LaunchCopy<1>(stream, x, y, rows, row_bytes);
}

}  // namespace satrap
