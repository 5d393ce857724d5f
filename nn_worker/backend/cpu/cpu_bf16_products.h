// Products of BF16 matrices with sums in f32. CpuHalfBackend calls this interface. Each way to
// multiply such matrices implements it (cpu_amx_bf16.h, cpu_avx512_bf16.h).
//
// In each implementation, a row of y or dx has the same bits however many rows and threads there
// are, and dw and db have the same bits for any number of threads. Subnormal values count as 0.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_BF16_PRODUCTS_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_BF16_PRODUCTS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

class CpuBf16Products {
 public:
  virtual ~CpuBf16Products() = default;

  // In the functions below x, w and dz are BF16, y and dx are BF16 or F32, all of any stride; dw
  // and db are F32 without gaps. Any size may be 0.
  //
  // y = x w + bias; with `relu` negative values become 0.
  // x: (n, in)   w: (in, out)   bias: F32 (1, out), or empty   y: (n, out)
  virtual void Product(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu,
                       const Tensor& y) = 0;
  // Calls before(begin, end) for each slice of rows, on the thread that then computes the slice: dx
  // = dz w^T, or dx += dz w^T. `before` may write these rows of dz. If dx is not wanted, only
  // `before` is called.   dz: (n, out)   dx: (n, in)
  virtual void InputGradient(const Tensor& dz, const Tensor& w, const GradientTarget& dx,
                             absl::FunctionRef<void(int64_t, int64_t)> before) = 0;
  // dw = x^T dz, and db = the sums of the columns of dz.   db: (1, out), or empty
  virtual void WeightGradient(const Tensor& x, const Tensor& dz, const Tensor& dw,
                              const Tensor& db) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_BF16_PRODUCTS_H_
