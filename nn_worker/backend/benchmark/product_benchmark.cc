// Measures the matrix products of the CPU backends: Linear (x w) and LinearGrad (dz w^T and x^T
// dz). The shapes are those of an MLP 400-400-400 over 429 inputs, of 1024-512 and of 64-32, on 1
// and on 2 threads. Products are measured in F32, and in BF16 by each kind of product that is fast
// on this CPU.
//
//   product_benchmark [--batch N] [--sets N]
//
// With several sets of operands, each run takes the next set, so that no cache holds what a run
// reads and writes. Prints one JSON line for each: the best of 7 runs, in GFLOP/s of wall time.
// `bare` is the baseline for products in slices: oneDNN's own product of the whole F32 matrices, in
// one call on one thread. The runs of a shape follow one another directly, so that other changes on
// the machine do not disturb their ratios.

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/flags/flags.h"
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

struct Options {
  int64_t batch = 4096;
  int64_t sets = 1;
};

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

LinearGradArgs OperandsOf(DType dtype, Backend* backend, int64_t batch, int64_t in, int64_t out) {
  LinearGradArgs args;
  args.x = Random(backend, dtype, batch, in);
  args.w = RandomWeights(backend, dtype, in, out);
  args.dw = RandomWeights(backend, DType::kF32, in, out);
  args.y = Random(backend, dtype, batch, out);
  args.dy = Random(backend, dtype, batch, out);
  args.dx = {Random(backend, dtype, batch, in), false};
  args.db = Random(backend, DType::kF32, 1, out);
  args.activation = Activation::kRelu;
  return args;
}

void Run(const char* products, DType dtype, Backend* backend, const Options& options, int threads,
         int64_t in, int64_t out) {
  const int64_t batch = options.batch;
  std::vector<LinearGradArgs> sets;
  for (int64_t s = 0; s < options.sets; ++s) {
    sets.push_back(OperandsOf(dtype, backend, batch, in, out));
  }
  size_t next = 0;
  const auto seconds = [&](auto work) {
    return BestSeconds(7, [&] { work(sets[next++ % sets.size()]); });
  };
  const double gflop = 2e-9 * static_cast<double>(batch * in * out);
  const double forward = seconds([&](const LinearGradArgs& args) {
    backend->Linear(args.x, args.w, args.db, Activation::kRelu, args.y);
  });
  const double backward = seconds([&](const LinearGradArgs& args) { backend->LinearGrad(args); });
  const double weights = seconds([&](LinearGradArgs args) {
    args.dx = {};
    args.activation = Activation::kLinear;
    backend->LinearGrad(args);
  });
  const Tensor x = Random(backend, DType::kF32, batch, in);
  const Tensor w = RandomWeights(backend, DType::kF32, in, out);
  const Tensor y = Random(backend, DType::kF32, batch, out);
  omp_set_num_threads(1);
  const double bare = BestSeconds(7, [&] {
    dnnl_sgemm('N', 'N', batch, out, in, 1, FloatsOf(x), x.stride, FloatsOf(w), out, 0, FloatsOf(y),
               y.stride);
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
  line.set_weight_gradient_gflops(gflop / weights);
  line.set_batch(batch);
  line.set_sets(options.sets);
  line.set_cpu(CpuName());
  PrintJson(line);
}

void RunAll(const Options& options, int threads, int64_t in, int64_t out) {
  Run("F32", DType::kF32, NewCpuBackend(threads).get(), options, threads, in, out);
  const auto run_bf16 = [&](const char* name, HalfProducts products) {
    Run(name, DType::kBF16, NewCpuHalfBackend(threads, products).get(), options, threads, in, out);
  };
  if (CpuAvx512Bf16::IsSupported()) run_bf16("BF16 by AVX512_BF16", HalfProducts::kAvx512Bf16);
  if (CpuAmxBf16::IsSupported()) run_bf16("BF16 by AMX", HalfProducts::kAmxBf16);
  run_bf16("BF16 widened to F32", HalfProducts::kF32);
}

int Main(int argc, char** argv) {
  Options options;
  const auto code = TakeProgramFlags(
      argc, argv, "usage: product_benchmark [OPTIONS]",
      {NumberFlag("batch", "N", "samples (default: 4096)", &options.batch, 1),
       NumberFlag("sets", "N", "sets of operands that the runs take in turn (default: 1)",
                  &options.sets, 1)});
  if (code.has_value()) return *code;
  for (const int threads : {1, 2}) {
    RunAll(options, threads, 429, 400);
    RunAll(options, threads, 400, 400);
    RunAll(options, threads, 1024, 512);
    RunAll(options, threads, 429, 64);
    RunAll(options, threads, 64, 32);
    RunAll(options, threads, 400, 1);
  }
  return 0;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) { return satrap::Main(argc, argv); }
