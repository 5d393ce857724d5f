// The matrix products of CpuBackend. A product is divided into slices, and each thread of a
// ForkJoinPool computes its slices by single-threaded calls of oneDNN's f32 product.
//
// Slices have a fixed size, whatever the number of threads, and no sum is split between slices:
//
//   y = x w        slices of kRowBlock rows of y. The last slice is padded in scratch memory, so
//                  that the same kernel computes a row however many rows there are (a product of
//                  one row takes another path in oneDNN and differs in the last bit).
//   dx = dz w^T    as y, with w transposed first: oneDNN's product of operands that are not
//                  transposed is about 15 % faster.
//   dw = x^T dz    slices of rows of dw.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_MATRIX_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_MATRIX_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/backend.h"

namespace satrap {

// Memory that grows to the largest request and is not freed before its destruction. Growing loses
// the contents.
class AlignedScratch {
 public:
  template <typename T>
  T* Get(int64_t count) {
    return static_cast<T*>(GetBytes(count * static_cast<int64_t>(sizeof(T))));
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  void* GetBytes(int64_t bytes);

  std::unique_ptr<void, Free> data_;
  int64_t capacity_bytes_ = 0;
};

class CpuMatrix {
 public:
  // The number of rows in a slice of a forward or input gradient product.
  static constexpr int64_t kRowBlock = 64;

  // `pool` is not owned.
  explicit CpuMatrix(ForkJoinPool* pool);

  // y = x w. Calls after(begin, end) for each slice of rows while the slice is still in cache.
  // x: (n, in)  w: (in, out), no gaps  y: (n, out)     REQUIRES: in, out >= 1
  void Product(Tensor x, Tensor w, Tensor y, absl::FunctionRef<void(int64_t, int64_t)> after);
  // Calls before(begin, end) for each slice of rows, then dx = dz w^T; with `add`, dx += dz w^T. dx
  // may be empty.
  void InputGradient(Tensor dz, Tensor w, GradientTarget dx,
                     absl::FunctionRef<void(int64_t, int64_t)> before);
  // dw = x^T dz.  dw: (in, out), no gaps.
  void WeightGradient(Tensor x, Tensor dz, Tensor dw);

 private:
  void RowSlices(Tensor a, const float* b, int64_t b_stride, Tensor c, bool add,
                 absl::FunctionRef<void(int64_t, int64_t)> before,
                 absl::FunctionRef<void(int64_t, int64_t)> after);

  ForkJoinPool* const pool_;
  AlignedScratch transposed_;
  AlignedScratch tail_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_MATRIX_H_
