#include "nn_worker/device/kernels/fill.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"

namespace satrap {
namespace {

template <typename T, int N>
SATRAP_KERNEL void FillKernel(Matrix<T> y, float value) {
  const T rounded = FromFloat<T>(value);
  Vec<T, N> group;
  for (int i = 0; i < N; ++i) group.lane[i] = rounded;
  ForEachGroup(y.rows, (y.cols + N - 1) / N, [&](int64_t r, int64_t g) {
    T* const p = y.data + r * y.stride + g * N;
    if ((g + 1) * N <= y.cols) {
      StoreVec(p, group);
    } else {
      for (int64_t c = g * N; c < y.cols; ++c) y.data[r * y.stride + c] = rounded;
    }
  });
}

template <typename T, int N>
void LaunchFill(DeviceStream* stream, Matrix<T> y, float value) {
  const ElementwiseShape shape = ShapeOf(y.rows, (y.cols + N - 1) / N);
  Launch<FillKernel<T, N>>(stream, shape.grid, shape.block, 0, y, value);
}

}  // namespace

template <typename T>
void Fill(DeviceStream* stream, Matrix<T> y, float value) {
  if (y.rows == 0 || y.cols == 0) return;
  y = Flattened(y);
  if (RowsAligned(y, 16)) {
    LaunchFill<T, kVecLanes<T>>(stream, y, value);
  } else {
    LaunchFill<T, 1>(stream, y, value);
  }
}

template void Fill(DeviceStream*, Matrix<float>, float);
template void Fill(DeviceStream*, Matrix<double>, float);
template void Fill(DeviceStream*, Matrix<Half>, float);
template void Fill(DeviceStream*, Matrix<Bf16>, float);
template void Fill(DeviceStream*, Matrix<uint8_t>, float);

}  // namespace satrap
