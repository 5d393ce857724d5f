// The names of kernel.h for the host. Threads are fibers of a BlockRunner (block_runner.h), and
// operations that involve other threads of a block call the functions of kernel_thread.h.
//
// Kernel sources include this file through kernel.h, as "kernel_dialect.h".

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_DIALECT_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_DIALECT_H_

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/host/kernel_atomics.h"
#include "nn_worker/device/host/kernel_numbers.h"
#include "nn_worker/device/host/kernel_thread.h"
#include "nn_worker/device/vec.h"

#define SATRAP_KERNEL
#define SATRAP_DEVICE

// Each SHARED_ARRAY in the source of a kernel has its own variable, NAME_site. The address of this
// variable identifies the array.
#define SHARED_ARRAY(T, name, dims)                                             \
  static const char name##_site = 0;                                            \
  using name##_array = T dims;                                                  \
  name##_array& name = *static_cast<name##_array*>(::satrap::host::SharedArray( \
      &name##_site, #name, static_cast<int64_t>(sizeof(name##_array))))

namespace satrap {

inline Dim3 ThreadIndex() { return host::current_thread->index; }
inline Dim3 BlockIndex() { return host::current_thread->block->index; }
inline Dim3 BlockSize() { return host::current_thread->block->size; }
inline Dim3 GridSize() { return host::current_thread->block->grid; }

template <typename T>
T* DynamicShared() {
  return static_cast<T*>(host::DynamicShared());
}

inline void SyncThreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  host::Barrier({file, line});
}
inline void SyncWarp(uint32_t mask, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE()) {
  host::WarpExchange(host::WarpOperation::kSync, mask, 0, 0, {file, line});
}

namespace host {

template <typename T>
T ShuffleFrom(WarpOperation operation, uint32_t mask, T value, int lane, Site where) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = WarpExchange(operation, mask, bits, lane, where);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <auto kKernel, typename... Params, size_t... I>
void CallWith(const void* const* args, void (*)(Params...), std::index_sequence<I...>) {
  kKernel(*static_cast<const Params*>(args[I])...);
}

template <auto kKernel, typename... Params>
constexpr auto IndicesOf(void (*)(Params...)) {
  return std::index_sequence_for<Params...>();
}

template <auto kKernel>
void CallKernel([[maybe_unused]] const void* const* args) {
  CallWith<kKernel>(args, kKernel, IndicesOf<kKernel>(kKernel));
}

}  // namespace host

namespace internal {

template <auto kKernel>
auto KernelEntry() -> void (*)() {
  return reinterpret_cast<void (*)()>(&host::CallKernel<kKernel>);
}

}  // namespace internal

template <typename T>
T Shuffle(uint32_t mask, T value, int lane, const char* file = __builtin_FILE(),
          int line = __builtin_LINE()) {
  return host::ShuffleFrom(host::WarpOperation::kShuffle, mask, value, lane & 31, {file, line});
}
template <typename T>
T ShuffleDown(uint32_t mask, T value, int delta, const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) {
  host::CheckDelta(delta, {file, line});
  const int lane = host::current_thread->lane + delta;
  return host::ShuffleFrom(host::WarpOperation::kShuffleDown, mask, value,
                           lane < 32 ? lane : host::current_thread->lane, {file, line});
}
template <typename T>
T ShuffleXor(uint32_t mask, T value, int bits, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) {
  return host::ShuffleFrom(host::WarpOperation::kShuffleXor, mask, value,
                           (host::current_thread->lane ^ bits) & 31, {file, line});
}
inline uint32_t Ballot(uint32_t mask, bool predicate, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  return static_cast<uint32_t>(
      host::WarpExchange(host::WarpOperation::kVote, mask, predicate ? 1 : 0, 0, {file, line}));
}
inline bool Any(uint32_t mask, bool predicate, const char* file = __builtin_FILE(),
                int line = __builtin_LINE()) {
  return Ballot(mask, predicate, file, line) != 0;
}
inline bool All(uint32_t mask, bool predicate, const char* file = __builtin_FILE(),
                int line = __builtin_LINE()) {
  return Ballot(mask, predicate, file, line) == mask;
}

template <int N, typename T>
Vec<std::remove_const_t<T>, N> LoadVec(T* p, const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) {
  using V = Vec<std::remove_const_t<T>, N>;
  host::CheckAligned(p, sizeof(V), {file, line});
  return *reinterpret_cast<const V*>(p);
}
template <typename T, int N>
void StoreVec(T* p, const Vec<T, N>& value, const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) {
  host::CheckAligned(p, sizeof(value), {file, line});
  *reinterpret_cast<Vec<T, N>*>(p) = value;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_DIALECT_H_
