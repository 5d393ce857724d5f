// Measures the matrix products of the CPU backends: Linear (x w) and LinearGrad (dz w^T and x^T
// dz). The shapes are those of an MLP 400-400-400 over 429 inputs, of 1024-512 and of 64-32, with
// batches of 4096, on 1 and on 2 threads. Products are measured in F32, and in BF16 by each kind of
// product that is fast on this CPU.
//
// Prints one JSON line for each: the best of 7 runs, in GFLOP/s of wall time. `bare` is the
// baseline for products in slices: oneDNN's own product of the whole F32 matrices, in one call on
// one thread. The runs of a shape follow one another directly, so that other changes on the machine
// do not disturb their ratios.

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/json/json.h"
#include "common/numeric/random.h"
#include "common/testing/measure.h"
#include "nn_worker/backend/cpu/cpu_amx_bf16.h"
#include "nn_worker/backend/cpu/cpu_avx512_bf16.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"
#include "nn_worker/backend/cpu/host_tensor.h"
#include "nn_worker/backend/tensor_copy.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

constexpr int64_t kBatch = 4096;

Tensor Random(Backend* backend, DType dtype, int64_t rows, int64_t cols) {
  const auto x = AllocateTensor(backend, DType::kF32, rows, cols, PaddedStride(DType::kF32, cols));
  CHECK_OK(x.status());
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < cols; ++c) {
      values.push_back(static_cast<float>(UniformDouble(RandomBits(1, i, c)) - 0.5));
    }
  }
  CopyIn(backend, values, *x);
  if (dtype == DType::kF32) return *x;
  const auto half = AllocateTensor(backend, dtype, rows, cols, PaddedStride(dtype, cols));
  CHECK_OK(half.status());
  backend->Copy(*x, *half, /*add=*/false);
  return *half;
}

// A tensor (rows, cols) without gaps, because parameters and their gradients have none.
Tensor RandomWeights(Backend* backend, DType dtype, int64_t rows, int64_t cols) {
  return Random(backend, dtype, 1, rows * cols).Reshaped(rows, cols);
}

void Run(const char* products, DType dtype, Backend* backend, int threads, int64_t in,
         int64_t out) {
  LinearGradArgs args;
  args.x = Random(backend, dtype, kBatch, in);
  args.w = RandomWeights(backend, dtype, in, out);
  args.dw = RandomWeights(backend, DType::kF32, in, out);
  args.y = Random(backend, dtype, kBatch, out);
  args.dy = Random(backend, dtype, kBatch, out);
  args.dx = {Random(backend, dtype, kBatch, in), false};
  args.db = Random(backend, DType::kF32, 1, out);
  args.activation = Activation::kRelu;
  const double gflop = 2e-9 * kBatch * static_cast<double>(in * out);
  const double forward =
      BestSeconds(7, [&] { backend->Linear(args.x, args.w, args.db, Activation::kRelu, args.y); });
  const double backward = BestSeconds(7, [&] { backend->LinearGrad(args); });
  const Tensor x = Random(backend, DType::kF32, kBatch, in);
  const Tensor w = RandomWeights(backend, DType::kF32, in, out);
  const Tensor y = Random(backend, DType::kF32, kBatch, out);
  omp_set_num_threads(1);
  const double bare = BestSeconds(7, [&] {
    dnnl_sgemm('N', 'N', kBatch, out, in, 1, FloatsOf(x), x.stride, FloatsOf(w), out, 0,
               FloatsOf(y), y.stride);
  });
  ProductLine line;
  line.set_benchmark("product");
  line.set_products(products);
  line.set_threads(threads);
  line.set_in(in);
  line.set_out(out);
  line.set_forward_gflops(gflop / forward);
  line.set_backward_gflops(2 * gflop / backward);
  line.set_bare_gflops(gflop / bare);
  PrintJson(line);
}

void RunAll(int threads, int64_t in, int64_t out) {
  Run("F32", DType::kF32, NewCpuBackend(threads).get(), threads, in, out);
  const auto run_bf16 = [&](const char* name, HalfProducts products) {
    Run(name, DType::kBF16, NewCpuHalfBackend(threads, products).get(), threads, in, out);
  };
  if (CpuAvx512Bf16::IsSupported()) run_bf16("BF16 by AVX512_BF16", HalfProducts::kAvx512Bf16);
  if (CpuAmxBf16::IsSupported()) run_bf16("BF16 by AMX", HalfProducts::kAmxBf16);
  run_bf16("BF16 widened to F32", HalfProducts::kF32);
}

}  // namespace
}  // namespace satrap

int main() {
  for (const int threads : {1, 2}) {
    satrap::RunAll(threads, 429, 400);
    satrap::RunAll(threads, 400, 400);
    satrap::RunAll(threads, 1024, 512);
    satrap::RunAll(threads, 429, 64);
    satrap::RunAll(threads, 64, 32);
    satrap::RunAll(threads, 400, 1);
  }
  return 0;
}
