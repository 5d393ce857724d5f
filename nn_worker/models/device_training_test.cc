// Trains PERSIA's model of Adult on the CPU and on the kernels of a device, which the host runs, on
// synthetic samples, and compares the weights.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/backend/host_device_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/models/zoo.h"

namespace satrap {
namespace {

constexpr int64_t kSamples = 128, kSteps = 250;
constexpr int kFeatures = 8;

struct Trained {
  std::vector<float> weights;
  double first_loss = 0, last_loss = 0;
};

// Uniform in [-1, 1) and the same on each backend; labels follow from the inputs, so that there is
// something to learn.
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
    CopyIn(backend, values, view.FirstRows(kSamples));
  }
  labels->clear();
  for (const double score : scores) labels->push_back(score > 0 ? 1.0f : 0.0f);
}

Trained Train(const std::string& model, const DenseOptimizerConfig& optimizer,
              std::unique_ptr<Backend> backend) {
  const auto collectives = NewLocalCollectives(1);
  NetworkOptions options;
  auto layers = ZooModel(model);
  CHECK_OK(layers.status());
  options.model = *layers;
  options.inputs.numeric_width = 5;
  for (int f = 0; f < kFeatures; ++f) {
    options.inputs.segments.push_back({"f" + std::to_string(f), "embedding", 8, 0});
    options.inputs.segments.push_back({"f" + std::to_string(f), "linear", 1, 0});
  }
  options.optimizer = optimizer;
  options.max_samples = kSamples;
  options.backend = backend.get();
  options.collective = collectives[0].get();
  auto network = Network::Create(options);
  CHECK_OK(network.status());
  Trained trained;
  std::vector<float> labels;
  for (int64_t step = 0; step < kSteps; ++step) {
    FillInputs(backend.get(), network->get(), step, &labels);
    CHECK_OK((*network)->Forward(kSamples, PassContext::Training(step, step * kSamples)));
    (*network)->Loss(labels, {}, {});
    CHECK_OK((*network)->Backward());
    if (step == 0) trained.first_loss = (*network)->ReadLoss().loss;
    if (step == kSteps - 1) trained.last_loss = (*network)->ReadLoss().loss;
    CHECK_OK((*network)->Step({step}, {kSamples, kSamples, 0}));
  }
  trained.weights = ReadFloats(backend.get(), (*network)->parameters());
  return trained;
}

void ExpectTheCpusWeights(const std::string& model, const DenseOptimizerConfig& optimizer,
                          double tolerance) {
  const Trained cpu = Train(model, optimizer, NewCpuBackend(1));
  const Trained device = Train(model, optimizer, NewHostDeviceBackend({}));
  EXPECT_LT(cpu.last_loss, 0.8 * cpu.first_loss) << "nothing was learned";
  EXPECT_NEAR(device.last_loss, cpu.last_loss, tolerance * kSamples);
  ASSERT_EQ(device.weights.size(), cpu.weights.size());
  double largest = 0;
  for (size_t i = 0; i < cpu.weights.size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(device.weights[i] - cpu.weights[i])));
  }
  EXPECT_LT(largest, tolerance);
}

// PERSIA's model and optimizer of Adult: linear layers and batch norm. A bias before batch norm has
// a gradient of rounding alone, which SGD keeps small.
TEST(DeviceTrainingTest, AdultHasTheCpusWeightsAfterHundredsOfSteps) {
  DenseOptimizerConfig optimizer;
  optimizer.set_learning_rate(0.1);
  optimizer.mutable_sgd();
  ExpectTheCpusWeights("adult_persia", optimizer, 1e-3);
}

}  // namespace
}  // namespace satrap
