// Measures the speed that a job's dense network would have if the machine computed nothing but its
// matrix products. These are, for each weight matrix and a global batch, the product of Forward and
// the two products of Backward. The CPU's backend runs them as in the NN worker, in the job's
// precision, without bias and activation. No training can be faster.
//
//   products_benchmark --job FILE     FILE is a resolved job file, as each run folder has one
//
// Prints one JSON line for one thread and one for all compute threads of the job's NN workers.
// samples_per_second is the median over the passes that are made in one second; core_us_per_sample
// is the processor time of all threads. `./satrap bench deepfm` runs this after the training that
// it measures and reads `threads` and the two figures, so their names and their order are fixed.

#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/config/job_config.h"
#include "common/flags/flags.h"
#include "common/json/json.h"
#include "common/numeric/random.h"
#include "common/testing/measure.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/graph/model/graph_builder.h"
#include "nn_worker/graph/precision.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

constexpr double kSeconds = 1;

// y = x w, dx = dy w^T, dw = x^T dy.
struct Product {
  int64_t in = 0;
  int64_t out = 0;
  bool wants_dx = false;  // false: the input is data, which has no gradient
};

// The products of all layers with a weight matrix. A bias, which is a parameter of one row, has no
// product.
std::vector<Product> ProductsOf(const Graph& graph) {
  std::vector<Product> products;
  for (const GraphNode& node : graph.nodes) {
    for (const ParameterSpec& parameter : node.layer->parameters()) {
      if (parameter.rows == 1) continue;
      const bool wants_dx = graph.tensors[node.inputs[0]].needs_gradient;
      products.push_back({parameter.rows, parameter.cols, wants_dx});
    }
  }
  return products;
}

Tensor NewTensor(Backend* backend, DType dtype, int64_t rows, int64_t cols) {
  // Rows begin at cache lines, as in the network.
  const auto tensor = AllocateTensor(backend, dtype, rows, cols, PaddedStride(dtype, cols));
  CHECK_OK(tensor.status());
  return *tensor;
}

Tensor RandomTensor(Backend* backend, DType dtype, int64_t rows, int64_t cols) {
  const Tensor wide = NewTensor(backend, DType::kF32, rows, cols);
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < cols; ++c) {
      values.push_back(static_cast<float>(UniformDouble(RandomBits(1, i, c)) - 0.5));
    }
  }
  CopyIn(backend, values, wide);
  if (dtype == DType::kF32) return wide;
  const Tensor half = NewTensor(backend, dtype, rows, cols);
  backend->Copy(wide, half, /*add=*/false);
  return half;
}

// A matrix of parameters, or of their gradients, which has no gaps.
Tensor RandomWeights(Backend* backend, DType dtype, int64_t rows, int64_t cols) {
  return RandomTensor(backend, dtype, 1, rows * cols).Reshaped(rows, cols);
}

void Measure(const std::vector<Product>& products, NnWorkerConfig::Precision precision,
             int64_t batch, int threads) {
  const DType dtype = DTypeOf(precision);
  const std::unique_ptr<Backend> owned =
      dtype == DType::kF32 ? NewCpuBackend(threads) : NewCpuHalfBackend(threads);
  Backend* const backend = owned.get();
  std::vector<LinearGradArgs> args;
  for (const Product& product : products) {
    // Logits and their gradients are F32 in each precision.
    const DType out_dtype = product.out == 1 ? DType::kF32 : dtype;
    LinearGradArgs arg;
    arg.x = RandomTensor(backend, dtype, batch, product.in);
    arg.w = RandomWeights(backend, dtype, product.in, product.out);
    arg.y = RandomTensor(backend, out_dtype, batch, product.out);
    arg.dy = RandomTensor(backend, out_dtype, batch, product.out);
    arg.dw = RandomWeights(backend, DType::kF32, product.in, product.out);
    if (product.wants_dx) arg.dx = {RandomTensor(backend, dtype, batch, product.in), false};
    args.push_back(arg);
  }
  const auto pass = [&] {
    const double start = WallSeconds();
    for (const LinearGradArgs& arg : args) {
      backend->Linear(arg.x, arg.w, Tensor(), Activation::kLinear, arg.y);
    }
    for (size_t i = args.size(); i > 0; --i) backend->LinearGrad(args[i - 1]);
    return WallSeconds() - start;
  };
  pass();  // warms up: oneDNN makes its kernels at their first use
  std::vector<double> seconds;
  const double cpu_start = ProcessCpuSeconds();
  for (const double end = WallSeconds() + kSeconds; seconds.empty() || WallSeconds() < end;) {
    seconds.push_back(pass());
  }
  const double cpu_us = 1e6 * (ProcessCpuSeconds() - cpu_start) /
                        static_cast<double>(static_cast<int64_t>(seconds.size()) * batch);
  const double rate = static_cast<double>(batch) / Median(seconds);
  ProductsLine line;
  line.set_benchmark("products");
  line.set_threads(threads);
  line.set_samples_per_second(rate);
  line.set_core_us_per_sample(cpu_us);
  line.set_batch(batch);
  line.set_precision(NnWorkerConfig::Precision_Name(precision));
  line.set_cpu(CpuName());
  PrintJson(line);
}

int Main(int argc, char** argv) {
  std::string path;
  const auto code = TakeProgramFlags(
      argc, argv, "usage: products_benchmark --job FILE",
      {Required(TextFlag("job", "FILE", "a resolved job, as each run folder has one", &path))});
  if (code.has_value()) return *code;
  const auto job = ReadResolvedJob(path);
  CHECK_OK(job.status());
  const auto graph = BuildGraph(job->model(), MakePartLayout(*job).inputs);
  CHECK_OK(graph.status());
  const std::vector<Product> products = ProductsOf(*graph);
  const NnWorkerConfig& config = job->nn_worker();
  const int all = config.replicas() * config.compute_threads();
  Measure(products, config.precision(), job->global_batch_size(), 1);
  if (all > 1) Measure(products, config.precision(), job->global_batch_size(), all);
  return 0;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) { return satrap::Main(argc, argv); }
