// A Vec is N values that a kernel loads or stores in one access (LoadVec and StoreVec, kernel.h),
// of 16 bytes where that is worthwhile. Its alignment equals its size.

#ifndef SATRAP_NN_WORKER_DEVICE_VEC_H_
#define SATRAP_NN_WORKER_DEVICE_VEC_H_

namespace satrap {

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  static_assert(sizeof(T) * N <= 16 && (N & (N - 1)) == 0, "no card has such an access");
  T lane[N];
};

// The widest Vec of T.
template <typename T>
inline constexpr int kVecLanes = 16 / static_cast<int>(sizeof(T));

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_VEC_H_
