// Products of BF16 matrices with sums in f32, by the tiles of AMX: the instruction tdpbf16ps
// multiplies 16 rows of 32 values by 32 rows of 16 values in 16 cycles, eight times the rate of
// AVX512_BF16 (cpu_avx512_bf16.h).
//
// Four tiles of sums, 32 rows and 32 columns, are computed at a time. The right matrix is packed
// first, in the order in which tiles read it. The left matrix is read in place, except by
// WeightGradient, whose sums run down its columns. A thread of the ForkJoinPool computes a slice of
// whole rows. While the sums of four tiles are in its L1 cache, it adds the bias, applies the ReLU,
// adds the old values of the result and rounds. So no result is written in f32 first.
//
// A value of y or dx is summed in the order of the columns of the left matrix; one instruction adds
// the products of 32 columns. WeightGradient divides the samples into parts, whose number depends
// only on the number of samples. Within a part it sums kSumSamples samples at a time and adds up
// these sums in order. Then it adds up the parts in order.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_AMX_BF16_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_AMX_BF16_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/cpu/cpu_bf16_products.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

class CpuAmxBf16 final : public CpuBf16Products {
 public:
  // The number of samples that WeightGradient adds up before it adds their sum to that of the part.
  static constexpr int64_t kSumSamples = 512;
  // The least number of samples of a part of WeightGradient, and the greatest number of parts.
  static constexpr int64_t kPartSamples = 2048;
  static constexpr int64_t kMostParts = 8;

  // Whether the CPU has the instructions.
  static bool CpuHasIt();
  // Whether the CPU has the instructions and the kernel lets this process use tiles. The first call
  // asks the kernel for permission.
  static bool IsSupported();

  // `pool` is not owned. REQUIRES: IsSupported()
  explicit CpuAmxBf16(ForkJoinPool* pool);
  ~CpuAmxBf16() override;

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

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_AMX_BF16_H_
