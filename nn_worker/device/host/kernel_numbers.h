// The number conversions and functions of kernel.h for the host. Part of kernel_dialect.h.
//
// Where it can, nvcc fuses a multiplication with the addition that follows it, and so rounds only
// once. Here both operations round, unless they are written as Fma. So results agree up to
// rounding, but not bit by bit.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_NUMBERS_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_NUMBERS_H_

#include <cmath>

#include "common/numeric/half.h"
#include "nn_worker/device/float16.h"

namespace satrap {

inline float ToFloat(float x) { return x; }
inline float ToFloat(double x) { return static_cast<float>(x); }
inline float ToFloat(Half x) { return F32FromF16(x.bits); }
inline float ToFloat(Bf16 x) { return F32FromBf16(x.bits); }
template <typename T>
T FromFloat(float x) {
  return static_cast<T>(x);
}
template <>
inline Half FromFloat<Half>(float x) {
  return {F16FromF32(x)};
}
template <>
inline Bf16 FromFloat<Bf16>(float x) {
  return {Bf16FromF32(x)};
}

inline float Exp(float x) { return std::exp(x); }
inline float Log1p(float x) { return std::log1p(x); }
inline float Sqrt(float x) { return std::sqrt(x); }
inline float Tanh(float x) { return std::tanh(x); }
inline float Abs(float x) { return std::fabs(x); }
inline float Fma(float x, float y, float z) { return std::fma(x, y, z); }
inline double Exp(double x) { return std::exp(x); }
inline double Log1p(double x) { return std::log1p(x); }
inline double Sqrt(double x) { return std::sqrt(x); }
inline double Tanh(double x) { return std::tanh(x); }
inline double Abs(double x) { return std::fabs(x); }
inline double Fma(double x, double y, double z) { return std::fma(x, y, z); }
// As in CUDA, the result for a NaN and a number is the number.
inline float Min(float x, float y) { return std::fmin(x, y); }
inline float Max(float x, float y) { return std::fmax(x, y); }
inline double Min(double x, double y) { return std::fmin(x, y); }
inline double Max(double x, double y) { return std::fmax(x, y); }

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_NUMBERS_H_
