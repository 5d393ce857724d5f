// Products of BF16 matrices with sums in f32, by the instruction vdpbf16ps of AVX512_BF16, which
// multiplies two pairs of values and adds both products to a sum: twice the rate of f32. The
// operations after a product (bias, ReLU, an addition, the rounding to BF16) are done while the
// sums are in registers.
//
// A product is made of tiles of up to 12 rows and 64 columns. The right matrix is packed first, so
// that a tile reads it in order. The left matrix is read in place, except by WeightGradient, whose
// sums run down its columns.
//
// A ForkJoinPool computes slices of whole rows of the result, and the order of a row's sums does
// not depend on the other rows. So a row has the same bits however many rows and threads there are.
// WeightGradient makes a sum for every kSumSamples samples and adds up these sums in order.
// Different kinds of CPU may give different last bits. The instruction treats subnormal values as
// 0, as the other loops of the CPU backend do.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_AVX512_BF16_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_AVX512_BF16_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/cpu/cpu_bf16_products.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

class CpuAvx512Bf16 final : public CpuBf16Products {
 public:
  // The number of samples that WeightGradient adds up before it adds their sum to the result.
  static constexpr int64_t kSumSamples = 1024;

  // Whether the CPU has the instruction, and the operating system keeps its registers.
  static bool IsSupported();

  // `pool` is not owned. REQUIRES: IsSupported()
  explicit CpuAvx512Bf16(ForkJoinPool* pool);
  ~CpuAvx512Bf16() override;

  void Product(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu,
               const Tensor& y) override;
  void InputGradient(const Tensor& dz, const Tensor& w, const GradientTarget& dx,
                     absl::FunctionRef<void(int64_t, int64_t)> before) override;
  void WeightGradient(const Tensor& x, const Tensor& dz, const Tensor& dw,
                      const Tensor& db) override;

 private:
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_AVX512_BF16_H_
