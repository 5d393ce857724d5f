#include "nn_worker/zoo/zoo.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/tensor_testing.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"

namespace satrap {
namespace {

// A zoo model over example inputs, trained for two steps.
class ExampleNetwork {
 public:
  ExampleNetwork(const ModelConfig& model, const ExampleData& data,
                 std::unique_ptr<Backend> backend = NewCpuBackend(1), bool trains = true)
      : backend_(std::move(backend)), collectives_(NewLocalCollectives(1)) {
    NetworkOptions options;
    options.model = model;
    options.inputs = ExampleInputs(model, data);
    options.max_samples = kSamples;
    options.trains = trains;
    options.backend = backend_.get();
    options.collective = collectives_[0].get();
    auto network = Network::Create(options);
    CHECK_OK(network.status());
    network_ = std::move(*network);
  }

  Backend* backend() { return backend_.get(); }
  Network* operator->() { return network_.get(); }

  // Makes a training pass over the inputs as they are now. Returns the loss; the gradients stay in
  // the network.
  double Loss() {
    CHECK_OK(network_->Forward(kSamples, PassContext::Training(0, 0)));
    network_->Loss({1, 0, 1}, {}, {});
    CHECK_OK(network_->Backward());
    return network_->ReadLoss().loss;
  }

  static constexpr int64_t kSamples = 3;

 private:
  const std::unique_ptr<Backend> backend_;
  const std::vector<std::unique_ptr<Collective>> collectives_;
  std::unique_ptr<Network> network_;
};

// The number of trainable values of a zoo model that has `features` features, with embeddings of
// `dim` values.
int64_t DenseParameters(const std::string& name, int features, int64_t dim, int64_t numerics) {
  auto model = ZooModel(name);
  CHECK_OK(model.status());
  ExampleNetwork network(*model, {features, numerics, dim});
  for (int64_t step = 0; step < 2; ++step) {
    network.Loss();
    CHECK_OK(network->Step({step}, {1, 3, 0}));
  }
  return network->num_parameters();
}

// The parameters of an MLP with three layers of 400 over i inputs, as counted in the logs of BARS.
int64_t Mlp(int64_t inputs) { return inputs * 400 + 400 + 2 * (400 * 400 + 400); }

// Frappe: 10 fields of dim 10 and 5,389 rows; the published counts include the rows.
constexpr int64_t kRows = 5389;

// The number of values in all rows. A row has those segments of a feature that the model reads.
int64_t RowValues(const std::string& name, int features, int64_t dim) {
  int64_t values = 0;
  for (const FeatureSegment& segment :
       ExampleInputs(*ZooModel(name), {features, 0, dim}).segments) {
    if (segment.feature == "f1") values += segment.dim;
  }
  return kRows * values;
}

// All these counts equal those in the logs of BARS.
TEST(ZooTest, HasThePublishedParameterCountsOnFrappe) {
  const std::vector<std::pair<std::string, int64_t>> published = {
      {"lr", 5390},           {"fm", 59280},
      {"ffm", 490400},        {"nfm", 384880},
      {"pnn", 433491},        {"crossnet", 55191},
      {"crossnet_v2", 94391}, {"wide_deep_bn", 423280},
      {"deepfm_bn", 423280},  {"dcn", 418591},
      {"dcnv2", 458391},      {"xdeepfm", 429809},
      {"autoint", 306051},    {"autoint_plus", 622180},
      {"fwfm", 107826}};
  for (const auto& [name, count] : published) {
    EXPECT_EQ(RowValues(name, 10, 10) + DenseParameters(name, 10, 10, 0), count) << name;
  }
  EXPECT_EQ(DenseParameters("deepfm", 10, 10, 0), Mlp(100) + 401);
  EXPECT_EQ(DenseParameters("wide_deep", 10, 10, 0), Mlp(100) + 401);
}

TEST(ZooTest, NumericsAddTheirColumns) {
  EXPECT_EQ(DenseParameters("lr", 26, 16, 13), 13 + 1);
  EXPECT_EQ(DenseParameters("deepfm", 26, 16, 13), Mlp(26 * 16 + 13) + 401 + 13);
}

TEST(ZooTest, AdultIsPersias) {
  EXPECT_EQ(DenseParameters("adult_persia", 8, 8, 5), (5 * 16 + 16) + 2 * 16 + (64 * 128 + 128) +
                                                          2 * 128 + (144 * 256 + 256) +
                                                          (256 * 128 + 128) + (128 + 1));
}

TEST(ZooTest, EveryModelTrains) {
  for (const std::string& name : ZooNames()) {
    EXPECT_GT(DenseParameters(name, 3, 16, 2), 0) << name;
  }
}

// `evaluate` and `predict` make networks that have no memory for training.
TEST(ZooTest, EveryModelScoresAlikeWithoutMemoryForATraining) {
  for (const std::string& name : ZooNames()) {
    const ModelConfig model = *ZooModel(name);
    ExampleNetwork trained(model, {3, 2, 16});
    ExampleNetwork scoring(model, {3, 2, 16}, NewCpuBackend(1), /*trains=*/false);
    ASSERT_TRUE(scoring->Load(trained->Save(), Network::LoadScope::kModel).ok()) << name;
    std::vector<std::vector<float>> logits;
    for (ExampleNetwork* network : {&trained, &scoring}) {
      SplitMix64 random(1);
      for (int input = 0; input < (*network)->num_inputs(); ++input) {
        const Tensor view = (*network)->input_view(input);
        if (view.empty()) continue;
        std::vector<float> values(static_cast<size_t>(view.size()));
        for (float& value : values) value = static_cast<float>(random.NextDouble() - .5);
        CopyIn(network->backend(), values, view);
      }
      ASSERT_TRUE((*network)->Forward(ExampleNetwork::kSamples, PassContext::Evaluation()).ok());
      logits.push_back((*network)->ReadLogits());
    }
    EXPECT_EQ(logits[1], logits[0]) << name;
  }
}

// A smaller and smooth version of a zoo model, so that finite differences of the loss give the
// gradients of the loss.
ModelConfig Smooth(const std::string& name) {
  ModelConfig model = *ZooModel(name);
  for (LayerConfig& layer : *model.mutable_layers()) {
    if (!layer.has_mlp()) continue;
    MlpConfig* mlp = layer.mutable_mlp();
    mlp->set_activation(ActivationConfig::TANH);
    mlp->set_dropout(0);
    mlp->clear_batch_norm();  // over three samples it is too curved for differences
    for (int i = 0; i < mlp->units_size(); ++i) {
      // The last layer of DLRM's bottom MLP and of the towers must fit the embeddings.
      if (i + 1 < mlp->units_size() || mlp->output_units() > 0) mlp->set_units(i, 5);
    }
  }
  return model;
}

TEST(ZooTest, GradientsOfInputsAreThoseOfTheLoss) {
  for (const std::string& name : ZooNames()) {
    // autoint has a ReLU after attention, and adult_persia has batch norm, so finite differences of
    // their losses are too inexact. The tests of these layers compare gradients instead.
    if (name == "autoint" || name == "autoint_plus" || name == "adult_persia") continue;
    ExampleNetwork network(Smooth(name), {3, 2, 16});
    Backend* const backend = network.backend();
    for (int input = 0; input < network->num_inputs(); ++input) {
      const Tensor view = network->input_view(input);
      if (view.empty()) continue;
      for (int64_t i = 0; i < view.rows; ++i) {
        for (int64_t c = 0; c < view.cols; ++c) {
          SetValueAt(backend, view, i, c,
                     static_cast<float>(UniformDouble(RandomBits(input, i, c)) - .5));
        }
      }
    }
    for (int input = 1; input < network->num_inputs(); ++input) {
      if (network->input_view(input).empty()) continue;
      network.Loss();
      const std::vector<float> gradients = ReadFloats(backend, network->input_gradient(input));
      const Tensor view = network->input_view(input);
      for (int64_t c = 0; c < std::min<int64_t>(3, view.cols); ++c) {
        constexpr float kDelta = 1.0f / 64;
        const float kept = ValueAt(backend, view, 1, c);
        SetValueAt(backend, view, 1, c, kept + kDelta);
        const double above = network.Loss();
        SetValueAt(backend, view, 1, c, kept - kDelta);
        const double below = network.Loss();
        SetValueAt(backend, view, 1, c, kept);
        EXPECT_NEAR(gradients[view.cols + c], (above - below) / (2 * kDelta), 3e-3)
            << name << ", input " << input << ", column " << c;
      }
    }
  }
}

TEST(ZooTest, AModelThatDoesNotExistIsAnErrorThatListsThoseThatDo) {
  EXPECT_EQ(ZooModel("dfm").status().message(),
            "model.zoo: no model \"dfm\"; there are adult_persia, autoint, autoint_plus, crossnet, "
            "crossnet_v2, dcn, dcnv2, deepfm, deepfm_bn, dlrm, ffm, fm, fwfm, lr, nfm, pnn, svd, "
            "two_tower, wide_deep, wide_deep_bn, xdeepfm, youtubednn");
}

}  // namespace
}  // namespace satrap
