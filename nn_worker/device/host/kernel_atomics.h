// The atomic operations of kernel.h for the host. Like CUDA's atomic operations, they are relaxed
// and work on one value. Part of kernel_dialect.h.
//
// Thread-safe: the blocks of a kernel may run on several threads.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_ATOMICS_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_ATOMICS_H_

#include <cstdint>
#include <cstring>

namespace satrap {
namespace host {

template <typename T>
T FetchUpdate(T* p, T (*update)(T before, T value), T value) {
  T before = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &before, update(before, value), /*weak=*/true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return before;
}

}  // namespace host

inline int32_t AtomicAdd(int32_t* p, int32_t v) {
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
inline uint32_t AtomicAdd(uint32_t* p, uint32_t v) {
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
inline uint64_t AtomicAdd(uint64_t* p, uint64_t v) {
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
inline float AtomicAdd(float* p, float v) {
  // Compares the bits of the values: the builtin compares only integers, and a NaN would not be
  // equal to itself.
  uint32_t* const bits = reinterpret_cast<uint32_t*>(p);
  uint32_t before = __atomic_load_n(bits, __ATOMIC_RELAXED), after;
  float value;
  do {
    std::memcpy(&value, &before, sizeof(value));
    const float sum = value + v;
    std::memcpy(&after, &sum, sizeof(after));
  } while (!__atomic_compare_exchange_n(bits, &before, after, /*weak=*/true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return value;
}
inline int32_t AtomicMax(int32_t* p, int32_t v) {
  return host::FetchUpdate<int32_t>(
      p, [](int32_t a, int32_t b) { return a > b ? a : b; }, v);
}
inline uint32_t AtomicMax(uint32_t* p, uint32_t v) {
  return host::FetchUpdate<uint32_t>(
      p, [](uint32_t a, uint32_t b) { return a > b ? a : b; }, v);
}
inline uint32_t AtomicCas(uint32_t* p, uint32_t expected, uint32_t value) {
  __atomic_compare_exchange_n(p, &expected, value, /*weak=*/false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
  return expected;
}
inline uint64_t AtomicCas(uint64_t* p, uint64_t expected, uint64_t value) {
  __atomic_compare_exchange_n(p, &expected, value, /*weak=*/false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
  return expected;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_ATOMICS_H_
