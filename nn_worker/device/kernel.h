// The language of kernels. A kernel is written once, in CUDA's dialect with the names below, in a
// source that includes this header and no header of CUDA. It is compiled twice: by nvcc for a card,
// and by the host's compiler for HostDevice (host/host_device.h). HostDevice runs the threads of a
// block as fibers and detects faults that a card would not report. Two files called
// kernel_dialect.h define the same names, and the build chooses one by its include path. The host's
// is host/kernel_dialect.h.
//
//   SATRAP_KERNEL void FillKernel(float* y, float value, int64_t count) {
//     for (int64_t i = ThreadInGrid(); i < count; i += ThreadsInGrid()) y[i] = value;
//   }
//   Launch<FillKernel>(stream, /*grid=*/{64}, /*block=*/{256}, /*shared_bytes=*/0, y, 0.5f, count);
//
// A dialect defines:
//
//   SATRAP_KERNEL, SATRAP_DEVICE      mark a kernel; a function that kernels call
//   ThreadIndex() BlockIndex()        Dim3, from 0: x is the fastest
//   BlockSize() GridSize()            Dim3: threads in a block, blocks in the grid
//   SHARED_ARRAY(T, name, [8][33]);   an array of the block; its contents are undefined at first
//   DynamicShared<T>()                T*, the launch's shared_bytes; aligned to 16
//   SyncThreads()                     waits for all threads of the block; all reach the same call
//   SyncWarp(mask)                    waits for all lanes of the mask
//   Shuffle(mask, value, lane)        `value` of the given lane. For all shuffles, values have 4 or
//                                     8 bytes, and the result is undefined if the mask does not
//                                     include the source lane
//   ShuffleDown(mask, value, delta)   `value` of the lane `delta` above, 0 <= delta < 32; beyond
//                                     lane 31, the lane's own value
//   ShuffleXor(mask, value, bits)     `value` of lane ^ `bits`
//   Ballot(mask, predicate)           uint32_t, bit i: the predicate of lane i
//   Any(mask, p)  All(mask, p)        bool
//   AtomicAdd(p, v)                   int32_t, uint32_t, uint64_t, float. All atomics are relaxed
//                                     and return the value before the operation
//   AtomicMax(p, v)                   int32_t, uint32_t
//   AtomicCas(p, expected, value)     uint32_t, uint64_t
//   ToFloat(x)  FromFloat<T>(f)       float, Half, Bf16, double. Rounds to nearest, ties to even;
//                                     a NaN stays a NaN, but its payload depends on the device
//   Exp Log1p Sqrt Tanh Abs Min Max Fma    of float and double; accurate, not approximate, versions
//   LoadVec<N>(p)  StoreVec(p, v)     one access of N values (Vec, vec.h); p is aligned to it
//
// A mask must include exactly the lanes that take part, and each of them must pass the same mask.
//
// Kernels may also call constexpr functions of ordinary headers (such as dropout_mask.h): nvcc gets
// --expt-relaxed-constexpr. Subnormal f32 values count as 0, as on the CPU's backend: nvcc gets
// -ftz=true (docs/gpu.md).

#ifndef SATRAP_NN_WORKER_DEVICE_KERNEL_H_
#define SATRAP_NN_WORKER_DEVICE_KERNEL_H_

#include <cstdint>
#include <type_traits>

#include "kernel_dialect.h"
#include "nn_worker/device/device_stream.h"

namespace satrap {

inline constexpr int kWarpSize = 32;
inline constexpr uint32_t kFullMask = 0xffffffffu;

// The number of this thread among all threads of the grid, and the number of threads, for
// one-dimensional launches.
SATRAP_DEVICE inline int64_t ThreadInGrid() {
  return static_cast<int64_t>(BlockIndex().x) * BlockSize().x + ThreadIndex().x;
}
SATRAP_DEVICE inline int64_t ThreadsInGrid() {
  return static_cast<int64_t>(GridSize().x) * BlockSize().x;
}

namespace internal {

// The compiler includes the kernel in the name of this function.
template <auto kKernel>
const char* KernelSignature() {
  return __PRETTY_FUNCTION__;
}

template <auto kKernel, typename... Params>
void LaunchTyped(void (*)(Params...), DeviceStream* stream, Dim3 grid, Dim3 block,
                 int64_t shared_bytes, std::type_identity_t<Params>... args) {
  static_assert((std::is_trivially_copyable_v<Params> && ...), "arguments are copied as bytes");
  const void* pointers[] = {&args..., nullptr};
  // NOLINTNEXTLINE(bugprone-sizeof-expression): the size of a pointer is meant
  const int32_t bytes[] = {static_cast<int32_t>(sizeof(Params))..., 0};
  stream->Launch({KernelSignature<kKernel>(), KernelEntry<kKernel>(), grid, block, shared_bytes,
                  pointers, bytes, static_cast<int>(sizeof...(Params))});
}

}  // namespace internal

// Enqueues a kernel. The arguments are converted to the kernel's parameter types and copied.
template <auto kKernel, typename... Args>
void Launch(DeviceStream* stream, Dim3 grid, Dim3 block, int64_t shared_bytes, Args... args) {
  internal::LaunchTyped<kKernel>(kKernel, stream, grid, block, shared_bytes, args...);
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNEL_H_
