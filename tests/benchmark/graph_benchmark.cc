// Measures the samples per second of the dense network alone, on 1 and on 2 threads. The network is
// a DeepFM with the shape of Criteo (26 id features of dim 16 with a linear weight, 13 numerics,
// MLP 400-400-400, batch 4096). A step consists of forward, loss, backward and Adam.
//
//   graph_benchmark [--mlp=400,400,400] [--batch=4096] [--seconds=5]
//
// Prints one JSON line for each number of threads; `samples_per_second` is the median over windows
// of 5 steps. A step also includes filling the inputs: each embedding is copied from a buffer of
// rows, as in training.

#include <cstring>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/flags/flags.h"
#include "common/json/json.h"
#include "common/numeric/random.h"
#include "common/testing/measure.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

constexpr int kFeatures = 26;
constexpr int kDim = 16;
constexpr int kNumerics = 13;

struct Shape {
  std::vector<int> mlp = {400, 400, 400};
  int64_t batch = 4096;
  double seconds = 5;

  std::vector<Flag> Table() {
    return {
        NumbersFlag("mlp", "N,N,...", "units of the layers (default: 400,400,400)", &mlp, 1,
                    1 << 20),
        NumberFlag("batch", "N", "samples of a step (default: 4096)", &batch, 1),
        NumberFlag("seconds", "N", "that are measured (default: 5)", &seconds, 0),
    };
  }
};

LayerConfig* AddLayer(const std::string& name, const std::vector<std::string>& inputs,
                      ModelConfig* model) {
  LayerConfig* layer = model->add_layers();
  layer->set_name(name);
  for (const std::string& input : inputs) layer->add_inputs(input);
  return layer;
}

NetworkOptions DeepFm(const Shape& shape) {
  NetworkOptions options;
  MlpConfig* deep = AddLayer("deep", {"*.embedding", "numeric"}, &options.model)->mutable_mlp();
  for (const int units : shape.mlp) deep->add_units(units);
  deep->set_output_units(1);
  AddLayer("fm", {"*.embedding"}, &options.model)->mutable_fm();
  AddLayer("linear", {"*.linear"}, &options.model)->mutable_sum();
  AddLayer("numeric_linear", {"numeric"}, &options.model)->mutable_linear()->set_units(1);
  AddLayer("logit", {"deep", "fm", "linear", "numeric_linear"}, &options.model)->mutable_add();
  options.inputs.numeric_width = kNumerics;
  for (int f = 0; f < kFeatures; ++f) {
    options.inputs.segments.push_back({"C" + std::to_string(f), "embedding", kDim, 0});
    options.inputs.segments.push_back({"C" + std::to_string(f), "linear", 1, 0});
  }
  options.optimizer.mutable_adam();
  options.max_samples = shape.batch;
  return options;
}

// Copies the rows of a batch to the graph's inputs.
void FillInputs(const std::vector<float>& rows, int64_t batch, Backend* backend, Network* network) {
  backend->Sync();
  for (int input = 0; input < network->num_inputs(); ++input) {
    const Tensor view = network->input_view(input);
    float* const to = static_cast<float*>(backend->HostView(view.data));
    for (int64_t i = 0; i < batch; ++i) {
      const size_t at = (i * 131 + input * 17) % (rows.size() - kDim);
      std::memcpy(to + i * view.stride, rows.data() + at, view.cols * sizeof(float));
    }
  }
}

void Run(const Shape& shape, int threads) {
  const std::unique_ptr<Backend> backend = NewCpuBackend(threads);
  const auto collectives = NewLocalCollectives(1);
  NetworkOptions options = DeepFm(shape);
  options.backend = backend.get();
  options.collective = collectives[0].get();
  auto network = Network::Create(options);
  CHECK_OK(network.status());

  SplitMix64 random(1);
  std::vector<float> rows(1 << 16);
  for (float& value : rows) value = static_cast<float>(random.NextDouble() - 0.5) * 0.1f;
  std::vector<float> labels(shape.batch);
  for (float& label : labels) label = random.Below(4) == 0 ? 1.0f : 0.0f;

  int64_t step = 0;
  const auto train = [&] {
    FillInputs(rows, shape.batch, backend.get(), network->get());
    CHECK_OK((*network)->Forward(shape.batch, PassContext::Training(step, 0)));
    (*network)->Loss(labels, {}, {});
    CHECK_OK((*network)->Backward());
    CHECK((*network)->CountNonFiniteGradients() == 0);
    CHECK_OK((*network)->Step({step}, {1, static_cast<float>(shape.batch), 0}));
    ++step;
  };
  for (int i = 0; i < 5; ++i) train();
  std::vector<double> rates;
  const int64_t first_step = step;
  const double cpu_begin = ProcessCpuSeconds();
  for (const double end = WallSeconds() + shape.seconds; WallSeconds() < end;) {
    const double start = WallSeconds();
    for (int i = 0; i < 5; ++i) train();
    rates.push_back(5 * shape.batch / (WallSeconds() - start));
  }
  const double cpu_us = 1e6 * (ProcessCpuSeconds() - cpu_begin) /
                        static_cast<double>((step - first_step) * shape.batch);
  const LossSums loss = (*network)->ReadLoss();
  GraphLine line;
  line.set_benchmark("graph");
  line.set_threads(threads);
  line.set_batch(shape.batch);
  line.set_samples_per_second(Median(rates));
  line.set_cpu_us_per_sample(cpu_us);
  line.set_loss(loss.loss / loss.weight);
  line.set_cpu(CpuName());
  PrintJson(line);
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  satrap::Shape shape;
  const auto code =
      satrap::TakeProgramFlags(argc, argv, "usage: graph_benchmark [FLAGS]", shape.Table());
  if (code.has_value()) return *code;
  for (const int threads : {1, 2}) satrap::Run(shape, threads);
  return 0;
}
