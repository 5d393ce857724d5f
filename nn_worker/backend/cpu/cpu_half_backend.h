// The CPU backend of a network that computes in 16 bits. Besides all that CpuBackend takes, it
// takes F16 and BF16 for the values of samples and for their gradients (x, y, dy, dx, the values of
// segments) and for the `w` of Linear and LinearGrad, also with different dtypes in one operation.
// A gradient of parameters, a sum and statistics stay F32 or F64.
//
// 16-bit values are widened to f32, which is exact; CpuBackend computes with them, sums in f32
// included; and what it writes is rounded to 16 bits, once, to nearest, ties to even. So a result
// is that of f32 up to the rounding of operands and results, and what backend.h says of the bits of
// a result holds here too. A result that is too large for an F16 becomes infinite, and
// the count of values that are not finite finds it.
//
// Widened products save memory but cost time. Where the CPU has products of BF16, matrices of BF16
// are multiplied as they are (HalfProducts), with sums in f32 too.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_BACKEND_H_

#include <memory>

#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/cpu/onednn_choice.h"

namespace satrap {

// How two BF16 matrices are multiplied; all others are widened.
enum class HalfProducts {
  kF32,         // widened, too
  kAvx512Bf16,  // cpu_avx512_bf16.h. REQUIRES: CpuAvx512Bf16::IsSupported()
  kOneDnnBf16,  // cpu_bf16_matrix.h, and what oneDNN has no fast way for as kAvx512Bf16 if the CPU has it,
                // else as kF32. REQUIRES: CpuBf16Matrix::IsSupported()
};
// The products of oneDNN on a CPU with AMX; otherwise those of AVX512_BF16, if the CPU has it;
// otherwise those of F32.
HalfProducts FastestHalfProducts();

// As NewCpuBackend (cpu_backend.h). `hooks` are for products by oneDNN.
std::unique_ptr<Backend> NewCpuHalfBackend(int compute_threads,
                                           HalfProducts products = FastestHalfProducts(),
                                           OneDnnHooks hooks = {});
std::unique_ptr<Backend> NewCpuHalfBackend(ForkJoinPool* pool,
                                           HalfProducts products = FastestHalfProducts(),
                                           OneDnnHooks hooks = {});

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_BACKEND_H_
