// Products of BF16 matrices with sums in f32, by oneDNN. A product is divided into slices, and each
// thread of a ForkJoinPool computes its slices by single-threaded calls of oneDNN. Two primitives
// are used. The first is the inner product, with the weights in the blocked layout that it asks
// for. Where oneDNN has only a reference implementation of the inner product (onednn_choice.h), as
// for rows with gaps on a CPU with AMX, the matmul is used instead, with the weights in place.
//
// As in cpu_matrix.h, slices have a fixed size whatever the number of threads, no sum is split
// between slices, and the last slice is padded. So a row has the same bits however many rows there
// are. The bits differ between kinds of CPU.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_BF16_MATRIX_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_BF16_MATRIX_H_

#include <memory>

#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/cpu/onednn_choice.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

class CpuBf16Matrix {
 public:
  // Whether oneDNN has these products on this CPU, fast or slow. They need AVX-512.
  static bool IsSupported();
  // Whether these products are faster than those of f32. This needs AMX. (Without AMX, even with
  // AVX512_BF16, oneDNN's product of BF16 is slower than its product of f32.) Depends on CPUID and
  // on the operating system.
  static bool IsFast();

  // `pool` is not owned. REQUIRES: IsSupported()
  explicit CpuBf16Matrix(ForkJoinPool* pool, OneDnnHooks hooks = {});
  ~CpuBf16Matrix();

  // In the functions below x, w and dz are BF16 with any stride; results are F32, and dw has no
  // gaps. n is the number of rows of x, dz and y and may be 0. All other sizes are at least 1.
  //
  // Whether oneDNN has more than a reference implementation for the product. The first call for a
  // shape makes the product. The product itself REQUIRES that the answer was true
  bool TakesProduct(const Tensor& x, const Tensor& w, const Tensor& y);
  bool TakesInputGradient(const Tensor& dz, const Tensor& w, const Tensor& dx);
  bool TakesWeightGradient(const Tensor& x, const Tensor& dz, const Tensor& dw);

  // y = x w.        x: (n, in)   w: (in, out)   y: (n, out)
  void Product(const Tensor& x, const Tensor& w, const Tensor& y);
  // dx = dz w^T.    dz: (n, out)   dx: (n, in)
  void InputGradient(const Tensor& dz, const Tensor& w, const Tensor& dx);
  // dw = x^T dz.
  void WeightGradient(const Tensor& x, const Tensor& dz, const Tensor& dw);

 private:
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_BF16_MATRIX_H_
