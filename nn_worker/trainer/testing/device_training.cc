// Trains PERSIA's model of Adult in 32 bits, and a model with interactions of many kinds in 32 and
// in 16 bits.

#include "nn_worker/trainer/testing/device_training.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/zoo/zoo.h"

namespace satrap {
namespace {

constexpr int64_t kSamples = 128;
constexpr int kFeatures = 8;

// A model with products of vectors, crossings, attention and both normalisations. One tower joins
// them.
constexpr char kInteractions[] = R"(
  layers { name: "fields" inputs: "*.embedding" stack {} }
  layers { name: "attended" inputs: "fields" attention { units: 4 heads: 2 } }
  layers { name: "flat" inputs: "attended" flatten {} }
  layers { name: "scaled" inputs: "flat" layer_norm {} }
  layers { name: "dots" inputs: "*.embedding" dot_interaction {} }
  layers { name: "pooled" inputs: "*.embedding" bi_interaction {} }
  layers { name: "crossed" inputs: "pooled" cross_v2 { layers: 2 } }
  layers { name: "unit" inputs: "crossed" l2_normalize {} }
  layers { name: "all" inputs: "scaled" inputs: "dots" inputs: "unit" inputs: "numeric" concat {} }
  layers { name: "deep" inputs: "all" mlp { units: 16 output_units: 1 } }
  layers { name: "linear" inputs: "*.linear" sum {} }
  layers { name: "logit" inputs: "deep" inputs: "linear" add {} })";

// Fills the inputs with values uniform in [-1, 1), the same on each backend. Labels follow from the
// inputs, so that there is something to learn.
void FillInputs(Backend* backend, Network* network, int64_t step, std::vector<float>* labels) {
  std::vector<double> scores(kSamples, 0);
  for (int input = 0; input < network->num_inputs(); ++input) {
    const Tensor view = network->input_view(input);
    if (view.empty()) continue;
    std::vector<float> values;
    for (int64_t i = 0; i < kSamples; ++i) {
      for (int64_t c = 0; c < view.cols; ++c) {
        const uint64_t bits = RandomBits(input * 100 + c, step, i);
        values.push_back(static_cast<float>(2 * UniformDouble(bits) - 1));
        if (c % 2 == 0) scores[i] += values.back();
      }
    }
    const Tensor wide = AllocateTensor(backend, DType::kF32, kSamples, view.cols).value();
    CopyIn(backend, values, wide);
    backend->Copy(wide, view.FirstRows(kSamples), /*add=*/false);
  }
  labels->clear();
  for (const double score : scores) labels->push_back(score > 0 ? 1.0f : 0.0f);
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceTraining);

ModelConfig ModelOf(const std::string& text) {
  ModelConfig model;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

Trained Train(const TrainingJob& job, Backend* backend) {
  const auto collectives = NewLocalCollectives(1);
  NetworkOptions options;
  options.model = job.model;
  options.inputs.numeric_width = 5;
  for (int f = 0; f < kFeatures; ++f) {
    options.inputs.segments.push_back({"f" + std::to_string(f), "embedding", 8, 0});
    options.inputs.segments.push_back({"f" + std::to_string(f), "linear", 1, 0});
  }
  options.optimizer.set_learning_rate(0.1);
  options.optimizer.mutable_sgd();
  options.dtype = job.dtype;
  options.max_samples = kSamples;
  options.graph_capture = job.graph_capture;
  options.backend = backend;
  options.collective = collectives[0].get();
  auto network = Network::Create(options);
  CHECK_OK(network.status());
  Trained trained;
  std::vector<float> labels;
  for (int64_t step = 0; step < job.steps; ++step) {
    FillInputs(backend, network->get(), step, &labels);
    const LossTargets targets = {labels, {}, {}, {}};
    CHECK_OK((*network)->Train(kSamples, PassContext::Training(step, step * kSamples),
                               absl::MakeConstSpan(&targets, 1)));
    if (step == 0) trained.first_loss = (*network)->ReadLoss().loss;
    if (step == job.steps - 1) trained.last_loss = (*network)->ReadLoss().loss;
    CHECK_OK((*network)->Step({step}, {kSamples, kSamples, 0}));
  }
  trained.graph_launches = (*network)->graph_launches();
  trained.weights = (*network)->ParameterValues();
  return trained;
}

void ExpectTheCpusWeights(const Trained& device, const Trained& cpu, double tolerance) {
  EXPECT_LT(cpu.last_loss, 0.9 * cpu.first_loss) << "nothing was learned";
  EXPECT_NEAR(device.last_loss, cpu.last_loss, tolerance * kSamples);
  ASSERT_EQ(device.weights.size(), cpu.weights.size());
  double largest = 0;
  for (size_t i = 0; i < cpu.weights.size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(device.weights[i] - cpu.weights[i])));
  }
  EXPECT_LT(largest, tolerance);
}

namespace {

// PERSIA's model and optimizer for Adult: linear layers and batch norm. The gradient of a bias
// before batch norm consists of rounding errors alone, and SGD keeps their effect small.
TEST_P(DeviceTraining, AdultHasTheCpusWeightsAfterHundredsOfSteps) {
  const TrainingJob job = {ZooModel("adult_persia").value(), 250};
  ExpectTheCpusWeights(Train(job, backend()), Train(job, NewCpuBackend(1).get()), 1e-3);
}

TEST_P(DeviceTraining, InteractionsHaveTheCpusWeights) {
  const TrainingJob job = {ModelOf(kInteractions), 60};
  ExpectTheCpusWeights(Train(job, backend()), Train(job, NewCpuBackend(1).get()), 1e-3);
}

TEST_P(DeviceTraining, GraphsChangeNoBits) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    TrainingJob job = {ModelOf(kInteractions), 10, dtype};
    const Trained captured = Train(job, backend());
    job.graph_capture = false;
    const Trained enqueued = Train(job, backend());
    EXPECT_EQ(captured.graph_launches, 9);
    EXPECT_EQ(enqueued.graph_launches, 0);
    EXPECT_EQ(captured.weights, enqueued.weights);
    EXPECT_EQ(captured.last_loss, enqueued.last_loss);
  }
}

// Despite rounding to 16 bits the model learns, and its weights stay near the CPU's.
TEST_P(DeviceTraining, InteractionsInSixteenBitsStayNearTheCpus) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const TrainingJob job = {ModelOf(kInteractions), 60, dtype};
    ExpectTheCpusWeights(Train(job, backend()),
                         Train(job, NewCpuHalfBackend(1, HalfProducts::kF32).get()), 0.02);
  }
}

}  // namespace
}  // namespace satrap
