// The CPU backend of a network that computes in 16 bits. In addition to the dtypes that CpuBackend
// accepts, it accepts F16 and BF16 for the values of samples and their gradients (x, y, dy, dx, the
// values of segments) and for the `w` of Linear and LinearGrad. The tensors of one operation may
// have different dtypes. Gradients of parameters, sums and statistics stay F32 or F64.
//
// 16-bit values are widened to f32, which is exact. CpuBackend computes with the widened values and
// also sums in f32. Its results are rounded to 16 bits once, to nearest, ties to even. So a result
// equals that of f32 up to the rounding of operands and results, and the rules of backend.h about
// the bits of a result hold here too. A result that is too large for an F16 becomes infinite, and
// the count of values that are not finite finds it.
//
// Widening the factors of products saves memory but costs time. Where the CPU can multiply BF16
// itself, BF16 matrices are multiplied without widening (HalfProducts); these sums are in f32 as
// well.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_BACKEND_H_

#include <memory>
#include <string>

#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/backend.h"

namespace satrap {

// How two BF16 matrices are multiplied. In all other products the factors are widened to f32.
enum class HalfProducts {
  kF32,         // widened like all others
  kAvx512Bf16,  // cpu_avx512_bf16.h. REQUIRES: CpuAvx512Bf16::IsSupported()
  kAmxBf16,     // cpu_amx_bf16.h. REQUIRES: CpuAmxBf16::IsSupported()
};

// What the CPU and the operating system's kernel say that they support.
struct Bf16Units {
  bool cpu_has_amx = false;
  bool kernel_allows_amx = false;
  bool has_avx512_bf16 = false;
};
struct HalfProductsChoice {
  HalfProducts products = HalfProducts::kF32;
  std::string because;  // why a faster way that the CPU has is not taken; empty if there is none
};
// The fastest choice that `units` allow: AMX, else AVX512_BF16, else f32.
HalfProductsChoice ChooseHalfProducts(const Bf16Units& units);
// The choice on this CPU. Thread-safe.
HalfProductsChoice FastestHalfProducts();

// Like NewCpuBackend (cpu_backend.h).
std::unique_ptr<Backend> NewCpuHalfBackend(int compute_threads,
                                           HalfProducts products = FastestHalfProducts().products);
std::unique_ptr<Backend> NewCpuHalfBackend(ForkJoinPool* pool,
                                           HalfProducts products = FastestHalfProducts().products);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_BACKEND_H_
