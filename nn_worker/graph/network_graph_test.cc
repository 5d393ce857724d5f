#include "nn_worker/graph/network_graph.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/tensor_testing.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/model/graph_builder.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr int64_t kMaxSamples = 5;

// What a test observes of a layer.
struct Seen {
  PreparedLinear* input_relu = nullptr;
  std::vector<bool> adds;     // by input: whether its gradient is added
  std::vector<int64_t> rows;  // by input, in the last Forward
};

// Passes all calls on to a layer, and records its arguments.
class Watched final : public Layer {
 public:
  Watched(std::string name, std::unique_ptr<Layer> layer, std::vector<std::string>* calls,
          Seen* seen)
      : name_(std::move(name)), layer_(std::move(layer)), calls_(calls), seen_(seen) {}

  int num_outputs() const override { return layer_->num_outputs(); }
  bool reads_part(int input) const override { return layer_->reads_part(input); }
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    return layer_->Infer(inputs);
  }
  std::vector<ParameterSpec> parameters() const override { return layer_->parameters(); }
  std::vector<StateSpec> states() const override { return layer_->states(); }
  bool inputs_within_output() const override { return layer_->inputs_within_output(); }
  bool stops_gradient() const override { return layer_->stops_gradient(); }
  bool prevents_capture() const override { return layer_->prevents_capture(); }
  PreparedLinear* relu_product() const override { return layer_->relu_product(); }
  absl::Status Bind(const LayerBinding& binding) override {
    seen_->input_relu = binding.input_relu;
    for (const GradientTarget& dx : binding.dxs) seen_->adds.push_back(dx.add);
    return layer_->Bind(binding);
  }
  absl::Status Forward(const PassContext& pass, absl::Span<const Tensor> xs,
                       absl::Span<const Tensor> ys) override {
    calls_->push_back(name_);
    seen_->rows.clear();
    for (const Tensor& x : xs) seen_->rows.push_back(x.rows);
    return layer_->Forward(pass, xs, ys);
  }
  absl::Status Backward(const PassContext& pass, absl::Span<const Tensor> xs,
                        absl::Span<const Tensor> ys, absl::Span<const Tensor> dys,
                        absl::Span<const GradientTarget> dxs) override {
    calls_->push_back("-" + name_);
    return layer_->Backward(pass, xs, ys, dys, dxs);
  }

 private:
  const std::string name_;
  const std::unique_ptr<Layer> layer_;
  std::vector<std::string>* const calls_;
  Seen* const seen_;
};

class NetworkGraphTest : public testing::Test {
 protected:
  NetworkGraphTest() {
    GraphInputs& inputs = options_.inputs;
    inputs.numeric_width = 2;
    inputs.segments = {{"user", "pair", 2, 0}, {"user", "linear", 1, 0}, {"item", "linear", 1, 0}};
    options_.max_samples = inputs.max_samples = kMaxSamples;
    options_.backend = backend_.get();
    options_.collective = collectives_[0].get();
  }

  // Binds a graph of these layers. Gradients begin at 7, which no pass may add to.
  void Make(const std::string& model) {
    options_.model.Clear();
    CHECK(google::protobuf::TextFormat::ParseFromString(model, &options_.model)) << model;
    auto built = BuildGraph(options_.model, options_.inputs);
    CHECK_OK(built.status());
    calls_.clear();
    seen_ = std::vector<Seen>(built->nodes.size());
    for (size_t i = 0; i < built->nodes.size(); ++i) {
      GraphNode& node = built->nodes[i];
      node.layer = std::make_unique<Watched>(node.name, std::move(node.layer), &calls_, &seen_[i]);
    }
    graph_ = std::make_unique<NetworkGraph>(options_, *std::move(built));
    CHECK_OK(graph_->Allocate());
    CHECK_OK(values_.Allocate(graph_->graph(), options_));
    values_.SetInitialValues(options_.seed);
    gradients_ =
        AllocateTensor(backend_.get(), DType::kF32, 1, values_.parameter_layout.size).value();
    control_ = AllocateControl(backend_.get()).value();
    CHECK_OK(graph_->Bind(values_, gradients_, control_));
    for (const Tensor& gradient : graph_->memory().gradients) {
      if (!gradient.empty()) backend_->Fill(gradient, 7);
    }
  }

  // Trains a pass of `samples` samples, whose inputs are 0.1, 0.2, ... and whose labels are 0.
  // Returns the logits of the first task.
  std::vector<float> Train(int64_t samples) {
    Fill();
    graph_->BeginPass(samples, PassContext::Training(0, 0));
    EXPECT_TRUE(graph_->Forward().ok());
    std::vector<float> logits = graph_->ReadLogits(0);
    const std::vector<float> labels(samples, 0);
    const std::vector<LossTargets> targets(graph_->graph().outputs.size(), {labels, {}, {}, {}});
    graph_->Loss(targets);
    EXPECT_TRUE(graph_->Backward().ok());
    return logits;
  }
  void Fill() {
    for (int input = 0; input < graph_->graph().num_inputs; ++input) {
      const Tensor x = graph_->memory().values[input];
      if (x.empty()) continue;
      std::vector<float> values(x.size());
      for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i + 1);
      CopyIn(backend_.get(), values, x);
    }
  }

  int TensorOf(const std::string& name) const {
    for (size_t t = 0; t < graph_->graph().tensors.size(); ++t) {
      if (graph_->graph().tensors[t].name == name) return static_cast<int>(t);
    }
    CHECK(false) << name;
    return -1;
  }
  // The gradient of the first `samples` rows of a tensor.
  std::vector<float> GradientOf(const std::string& name, int64_t samples) const {
    return ReadFloats(backend_.get(),
                      graph_->memory().gradients[TensorOf(name)].FirstRows(samples));
  }
  const Seen& SeenBy(const std::string& layer) const {
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (graph_->graph().nodes[i].name == layer) return seen_[i];
    }
    CHECK(false) << layer;
    return seen_[0];
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
  NetworkOptions options_;
  std::vector<std::string> calls_;  // of layers, in their order; "-" before a Backward
  std::vector<Seen> seen_;          // by node
  NetworkValues values_;
  Tensor gradients_, control_;
  std::unique_ptr<NetworkGraph> graph_;
};

// The gradient of BCE with the label 0, times `count`.
std::vector<float> Sigmoids(const std::vector<float>& logits, float count = 1) {
  std::vector<float> gradients;
  for (const float logit : logits) gradients.push_back(count / (1 + std::exp(-logit)));
  return gradients;
}

constexpr char kRaw[] = R"(layers { name: "raw" inputs: "numeric" activation {} })";
constexpr char kDeep[] = R"(layers { name: "deep" inputs: "raw" linear { units: 3 } })";
constexpr char kLogit[] = R"(layers { name: "logit" inputs: "deep" linear { units: 1 } })";

TEST_F(NetworkGraphTest, LayersRunAfterThoseThatTheyReadWhateverTheJobsOrder) {
  std::vector<float> logits;
  for (const std::string& model :
       {absl::StrCat(kRaw, kDeep, kLogit), absl::StrCat(kLogit, kDeep, kRaw),
        absl::StrCat(kDeep, kLogit, kRaw)}) {
    Make(model);
    const std::vector<float> now = Train(kMaxSamples);
    EXPECT_THAT(calls_, ElementsAre("raw", "deep", "logit", "-logit", "-deep"))
        << "nothing before `raw` learns";
    if (logits.empty()) logits = now;
    EXPECT_EQ(now, logits);
  }
}

TEST_F(NetworkGraphTest, TheGradientOfATensorIsTheSumOverAllThatReadIt) {
  Make(R"(
    layers { name: "twice" inputs: [ "user.linear", "user.linear" ] add {} }
    layers { name: "once" inputs: "user.linear" sum {} }
    layers { name: "logit" inputs: [ "twice", "once", "item.linear" ] add {} })");
  for (int round = 0; round < 2; ++round) {
    const std::vector<float> logits = Train(kMaxSamples);
    EXPECT_THAT(GradientOf("user.linear", kMaxSamples),
                Pointwise(FloatNear(1e-5f), Sigmoids(logits, 3)));
    EXPECT_THAT(GradientOf("item.linear", kMaxSamples),
                Pointwise(FloatNear(1e-5f), Sigmoids(logits)));
  }
  // Backward goes from the last layer to the first.
  EXPECT_THAT(SeenBy("once").adds, ElementsAre(false));
  EXPECT_THAT(SeenBy("twice").adds, ElementsAre(true, true));
}

TEST_F(NetworkGraphTest, TheGradientOfAnOutputThatIsReadIsAddedToThatOfItsLoss) {
  Make(R"(
    layers { name: "click" inputs: "user.linear" sum {} }
    layers { name: "buy" inputs: [ "click", "item.linear" ] add {} }
    tasks { name: "click" output: "click" }
    tasks { name: "buy" output: "buy" })");
  const std::vector<float> click = Sigmoids(Train(kMaxSamples));
  const std::vector<float> buy = GradientOf("item.linear", kMaxSamples);
  std::vector<float> sum;
  for (size_t i = 0; i < click.size(); ++i) sum.push_back(click[i] + buy[i]);
  EXPECT_THAT(GradientOf("user.linear", kMaxSamples), Pointwise(FloatNear(1e-5f), sum));
}

// Either no layer reads the second value of a pair, or the layer that reads it passes no gradient
// on.
TEST_F(NetworkGraphTest, AnOutputOfALayerThatNobodyReadsHasTheGradientZero) {
  const std::string parts = R"(
    layers { name: "parts" inputs: "user.pair"
             slice { ranges { size: 1 } ranges { begin: 1 size: 1 } } })";
  for (const std::string rest : {R"(layers { name: "logit" inputs: "parts" sum {} })",
                                 R"(layers { name: "stop" inputs: "parts:1" stop_gradient {} }
           layers { name: "logit" inputs: [ "parts", "stop" ] add {} })"}) {
    Make(parts + rest);
    for (int round = 0; round < 2; ++round) {
      std::vector<float> expected;
      for (const float gradient : Sigmoids(Train(kMaxSamples))) {
        expected.insert(expected.end(), {gradient, 0});
      }
      EXPECT_THAT(GradientOf("user.pair", kMaxSamples), Pointwise(FloatNear(1e-5f), expected))
          << rest;
    }
  }
}

TEST_F(NetworkGraphTest, OnlyTheLastLayerToAddToAGradientHearsOfTheReluBefore) {
  Make(R"(
    layers { name: "hidden" inputs: "user.pair" linear { units: 2 activation: RELU } }
    layers { name: "first" inputs: "hidden" linear { units: 1 } }
    layers { name: "second" inputs: "hidden" linear { units: 1 } }
    layers { name: "both" inputs: [ "first", "second" ] add {} }
    layers { name: "logit" inputs: "both" linear { units: 1 } })");
  EXPECT_NE(SeenBy("first").input_relu, nullptr);
  EXPECT_EQ(SeenBy("second").input_relu, nullptr) << "`first` adds to the gradient after it";
  EXPECT_EQ(SeenBy("hidden").input_relu, nullptr) << "it reads an input of the graph";
  EXPECT_EQ(SeenBy("logit").input_relu, nullptr) << "`both` has no ReLU";
}

TEST_F(NetworkGraphTest, APassHasTheRowsOfItsPart) {
  options_.inputs.candidates = {{kCandidateInput, "pair", 2, 0}};
  options_.inputs.segments.push_back({"item", "pair", 2, 0});
  options_.inputs.max_candidates = 4;
  Make(R"(
    layers { name: "logit" inputs: "user.pair" inputs: "item.pair" inputs: "candidates.pair"
             candidate_logits {} }
    tasks { loss: SAMPLED_SOFTMAX })");
  for (const int64_t samples : {2, 0, 5}) {
    PassContext pass = PassContext::Evaluation();
    pass.candidates = 3;
    graph_->BeginPass(samples, pass);
    ASSERT_TRUE(graph_->Forward().ok());
    EXPECT_THAT(SeenBy("logit").rows, ElementsAre(samples, samples, 3));
    EXPECT_EQ(graph_->ReadLogits(0).size(), static_cast<size_t>(samples));
  }
}

TEST_F(NetworkGraphTest, GradientsBeyondALimitAreCountedInTheRowsOfThePartAlone) {
  Make(R"(layers { name: "logit" inputs: "user.pair" linear { units: 1 } })");
  Train(3);
  EXPECT_EQ(graph_->CountGradientsBeyond(gradients_, 1e15f), 0);
  const Tensor pair = graph_->memory().gradients[TensorOf("user.pair")];
  SetValueAt(backend_.get(), pair, 3, 0, 1e16f);  // after the part
  EXPECT_EQ(graph_->CountGradientsBeyond(gradients_, 1e15f), 0);
  SetValueAt(backend_.get(), pair, 2, 1, -1e16f);
  SetValueAt(backend_.get(), gradients_, 0, 0, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(graph_->CountGradientsBeyond(gradients_, 1e15f), 2);
}

}  // namespace
}  // namespace satrap
