// The names of kernel.h for nvcc, for cards of compute capability 8.0 and later. It includes no
// header of CUDA, because nvcc declares everything that it uses. Without --use_fast_math the
// functions are the accurate ones.
//
// Kernel sources include this file through kernel.h, as "kernel_dialect.h".

#ifndef SATRAP_NN_WORKER_DEVICE_CUDA_KERNEL_DIALECT_H_
#define SATRAP_NN_WORKER_DEVICE_CUDA_KERNEL_DIALECT_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/float16.h"
#include "nn_worker/device/vec.h"

#define SATRAP_KERNEL __global__
#define SATRAP_DEVICE __device__
#define SHARED_ARRAY(T, name, dims) __shared__ T name dims

namespace satrap {

__device__ inline Dim3 ThreadIndex() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
__device__ inline Dim3 BlockIndex() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
__device__ inline Dim3 BlockSize() { return {blockDim.x, blockDim.y, blockDim.z}; }
__device__ inline Dim3 GridSize() { return {gridDim.x, gridDim.y, gridDim.z}; }

// This is the kernel's only array without a size: all instances of this function name the same
// memory.
template <typename T>
__device__ T* DynamicShared() {
  extern __shared__ __align__(16) unsigned char dynamic_shared[];
  return reinterpret_cast<T*>(dynamic_shared);
}

__device__ inline void SyncThreads() { __syncthreads(); }
__device__ inline void SyncWarp(uint32_t mask) { __syncwarp(mask); }
// Numbers of 4 or 8 bytes, because CUDA has overloads for these.
template <typename T>
__device__ T Shuffle(uint32_t mask, T value, int lane) {
  return __shfl_sync(mask, value, lane);
}
template <typename T>
__device__ T ShuffleDown(uint32_t mask, T value, int delta) {
  return __shfl_down_sync(mask, value, delta);
}
template <typename T>
__device__ T ShuffleXor(uint32_t mask, T value, int bits) {
  return __shfl_xor_sync(mask, value, bits);
}
__device__ inline uint32_t Ballot(uint32_t mask, bool p) { return __ballot_sync(mask, p); }
__device__ inline bool Any(uint32_t mask, bool p) { return __any_sync(mask, p) != 0; }
__device__ inline bool All(uint32_t mask, bool p) { return __all_sync(mask, p) != 0; }

__device__ inline int32_t AtomicAdd(int32_t* p, int32_t v) { return atomicAdd(p, v); }
__device__ inline uint32_t AtomicAdd(uint32_t* p, uint32_t v) { return atomicAdd(p, v); }
__device__ inline uint64_t AtomicAdd(uint64_t* p, uint64_t v) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(v));
}
__device__ inline float AtomicAdd(float* p, float v) { return atomicAdd(p, v); }
__device__ inline int32_t AtomicMax(int32_t* p, int32_t v) { return atomicMax(p, v); }
__device__ inline uint32_t AtomicMax(uint32_t* p, uint32_t v) { return atomicMax(p, v); }
__device__ inline uint32_t AtomicCas(uint32_t* p, uint32_t e, uint32_t v) {
  return atomicCAS(p, e, v);
}
__device__ inline uint64_t AtomicCas(uint64_t* p, uint64_t e, uint64_t v) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(e),
                   static_cast<unsigned long long>(v));
}

// The conversions are written as instructions of the card, because CUDA's functions for them need a
// header.
__device__ inline float ToFloat(float x) { return x; }
__device__ inline float ToFloat(double x) { return static_cast<float>(x); }
__device__ inline float ToFloat(Half x) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
  return f;
}
__device__ inline float ToFloat(Bf16 x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}
template <typename T>
__device__ T FromFloat(float x) {
  return static_cast<T>(x);
}
template <>
__device__ inline Half FromFloat<Half>(float x) {
  Half h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}
template <>
__device__ inline Bf16 FromFloat<Bf16>(float x) {
  Bf16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}

__device__ inline float Exp(float x) { return expf(x); }
__device__ inline float Log1p(float x) { return log1pf(x); }
__device__ inline float Sqrt(float x) { return sqrtf(x); }
__device__ inline float Tanh(float x) { return tanhf(x); }
__device__ inline float Abs(float x) { return fabsf(x); }
__device__ inline float Fma(float x, float y, float z) { return fmaf(x, y, z); }
__device__ inline float Min(float x, float y) { return fminf(x, y); }
__device__ inline float Max(float x, float y) { return fmaxf(x, y); }
__device__ inline double Exp(double x) { return exp(x); }
__device__ inline double Log1p(double x) { return log1p(x); }
__device__ inline double Sqrt(double x) { return sqrt(x); }
__device__ inline double Tanh(double x) { return tanh(x); }
__device__ inline double Abs(double x) { return fabs(x); }
__device__ inline double Fma(double x, double y, double z) { return fma(x, y, z); }
__device__ inline double Min(double x, double y) { return fmin(x, y); }
__device__ inline double Max(double x, double y) { return fmax(x, y); }

template <int N, typename T>
__device__ Vec<std::remove_const_t<T>, N> LoadVec(T* p) {
  return *reinterpret_cast<const Vec<std::remove_const_t<T>, N>*>(p);
}
template <typename T, int N>
__device__ void StoreVec(T* p, const Vec<T, N>& value) {
  *reinterpret_cast<Vec<T, N>*>(p) = value;
}

namespace internal {
template <auto kKernel>
auto KernelEntry() -> void (*)() {
  return reinterpret_cast<void (*)()>(kKernel);
}
}  // namespace internal

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_CUDA_KERNEL_DIALECT_H_
