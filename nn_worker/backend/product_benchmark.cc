// The rate of the matrix products of CpuBackend: Linear (x w), and LinearGrad (dz w^T and x^T dz),
// at the shapes of an MLP 400-400-400 over 429 inputs and of 64-32, batch 4096, on 1 and on 2
// threads.
//
// Prints one JSON line for each: the best of 7 runs, in GFLOP/s of wall time, and beside it
// oneDNN's own product of the whole matrices in one call on one thread (`bare`), which is what
// slicing is measured against.

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/backend/host_tensor.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

constexpr int64_t kBatch = 4096;

double BestSeconds(const std::function<void()>& body) {
  body();
  double best = 1e9;
  for (int run = 0; run < 7; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

Tensor Random(Backend* backend, int64_t rows, int64_t cols) {
  const auto x = AllocateTensor(backend, DType::kF32, rows, cols, PaddedStride(DType::kF32, cols));
  CHECK_OK(x.status());
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < cols; ++c) {
      values.push_back(static_cast<float>(UniformDouble(RandomBits(1, i, c)) - 0.5));
    }
  }
  CopyIn(backend, values, *x);
  return *x;
}

void Run(int threads, int64_t in, int64_t out) {
  const std::unique_ptr<Backend> backend = NewCpuBackend(threads);
  LinearGradArgs args;
  args.x = Random(backend.get(), kBatch, in);
  args.w = Random(backend.get(), 1, in * out);
  args.w = TensorF32(FloatsOf(args.w), in, out);
  args.dw = Random(backend.get(), 1, in * out);
  args.dw = TensorF32(FloatsOf(args.dw), in, out);
  args.y = Random(backend.get(), kBatch, out);
  args.dy = Random(backend.get(), kBatch, out);
  args.dx = {Random(backend.get(), kBatch, in), false};
  args.db = Random(backend.get(), 1, out);
  args.activation = Activation::kRelu;
  const double gflop = 2e-9 * kBatch * static_cast<double>(in * out);
  const double forward =
      BestSeconds([&] { backend->Linear(args.x, args.w, args.db, Activation::kRelu, args.y); });
  const double backward = BestSeconds([&] { backend->LinearGrad(args); });
  omp_set_num_threads(1);
  const double bare = BestSeconds([&] {
    dnnl_sgemm('N', 'N', kBatch, out, in, 1, FloatsOf(args.x), args.x.stride, FloatsOf(args.w), out,
               0, FloatsOf(args.y), args.y.stride);
  });
  std::printf(
      "{\"benchmark\": \"product\", \"threads\": %d, \"in\": %d, \"out\": %d, "
      "\"forward_gflops\": %.0f, \"backward_gflops\": %.0f, \"bare_gflops\": %.0f}\n",
      threads, static_cast<int>(in), static_cast<int>(out), gflop / forward, 2 * gflop / backward,
      gflop / bare);
}

}  // namespace
}  // namespace satrap

int main() {
  for (const int threads : {1, 2}) {
    satrap::Run(threads, 429, 400);
    satrap::Run(threads, 400, 400);
    satrap::Run(threads, 429, 64);
    satrap::Run(threads, 64, 32);
    satrap::Run(threads, 400, 1);
  }
  return 0;
}
