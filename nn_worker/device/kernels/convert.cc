#include "nn_worker/device/kernels/convert.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"

namespace satrap {
namespace {

// The number of values in one access. The values of the wider type fill 16 bytes, and those of the
// other type a half or a quarter of that.
template <typename From, typename To>
constexpr int kVectorLanes = kVecLanes<From> < kVecLanes<To> ? kVecLanes<From> : kVecLanes<To>;

template <typename From, typename To>
SATRAP_DEVICE To Converted(From x, To y, bool add) {
  return FromFloat<To>(add ? ToFloat(y) + ToFloat(x) : ToFloat(x));
}

template <typename From, typename To, int N>
SATRAP_KERNEL void ConvertKernel(Matrix<const From> x, Matrix<To> y, bool add) {
  ForEachGroup(y.rows, (y.cols + N - 1) / N, [&](int64_t r, int64_t g) {
    const From* const from = x.data + r * x.stride;
    To* const to = y.data + r * y.stride;
    const int64_t c = g * N;
    if (c + N > y.cols) {
      for (int64_t i = c; i < y.cols; ++i) to[i] = Converted(from[i], add ? to[i] : To{}, add);
      return;
    }
    const auto values = LoadVec<N>(from + c);
    Vec<To, N> result = {};
    if (add) result = LoadVec<N>(to + c);
    for (int i = 0; i < N; ++i) {
      result.lane[i] = Converted(values.lane[i], result.lane[i], add);
    }
    StoreVec(to + c, result);
  });
}

template <typename From, typename To, int N>
void LaunchConvert(DeviceStream* stream, Matrix<const From> x, Matrix<To> y, bool add) {
  const ElementwiseShape shape = ShapeOf(y.rows, (y.cols + N - 1) / N);
  Launch<ConvertKernel<From, To, N>>(stream, shape.grid, shape.block, 0, x, y, add);
}

}  // namespace

template <typename From, typename To>
void Convert(DeviceStream* stream, Matrix<const From> x, Matrix<To> y, bool add) {
  if (y.rows == 0 || y.cols == 0) return;
  if (x.stride == x.cols && y.stride == y.cols) {
    x = Flattened(x);
    y = Flattened(y);
  }
  constexpr int kN = kVectorLanes<From, To>;
  if (RowsAligned(x, kN * sizeof(From)) && RowsAligned(y, kN * sizeof(To))) {
    LaunchConvert<From, To, kN>(stream, x, y, add);
  } else {
    LaunchConvert<From, To, 1>(stream, x, y, add);
  }
}

template void Convert(DeviceStream*, Matrix<const float>, Matrix<float>, bool);
template void Convert(DeviceStream*, Matrix<const float>, Matrix<Half>, bool);
template void Convert(DeviceStream*, Matrix<const float>, Matrix<Bf16>, bool);
template void Convert(DeviceStream*, Matrix<const Half>, Matrix<float>, bool);
template void Convert(DeviceStream*, Matrix<const Half>, Matrix<Half>, bool);
template void Convert(DeviceStream*, Matrix<const Half>, Matrix<Bf16>, bool);
template void Convert(DeviceStream*, Matrix<const Bf16>, Matrix<float>, bool);
template void Convert(DeviceStream*, Matrix<const Bf16>, Matrix<Half>, bool);
template void Convert(DeviceStream*, Matrix<const Bf16>, Matrix<Bf16>, bool);
template void Convert(DeviceStream*, Matrix<const double>, Matrix<float>, bool);

}  // namespace satrap
