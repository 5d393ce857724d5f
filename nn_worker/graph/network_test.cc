#include "nn_worker/graph/network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"
#include "common/numeric/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/backend/testing/reference_backend.h"
#include "nn_worker/backend/testing/tensor_testing.h"
#include "nn_worker/collective/local_collective.h"

namespace satrap {
namespace {

constexpr int64_t kMaxSamples = 150;

// A smooth model, so that finite differences of the loss come close to the gradients of the loss.
constexpr char kSmooth[] = R"(
  layers { name: "deep" inputs: "*.embedding" inputs: "numeric"
           mlp { units: 9 units: 5 activation: TANH output_units: 1 } }
  layers { name: "fm" inputs: "*.embedding" fm {} }
  layers { name: "linear" inputs: "*.linear" sum {} }
  layers { name: "numeric_linear" inputs: "numeric" linear { units: 1 } }
  layers { name: "logit" inputs: "deep" inputs: "fm" inputs: "linear" inputs: "numeric_linear" add {} })";

constexpr char kBatchNorm[] = R"(
  layers { name: "deep" inputs: "*.embedding" inputs: "numeric"
           mlp { units: 9 units: 5 batch_norm {} dropout: 0.2 output_units: 1 } }
  layers { name: "linear" inputs: "*.linear" sum {} }
  layers { name: "logit" inputs: "deep" inputs: "linear" add {} })";

// Tasks that share a layer. The outputs of two tasks are also read by other layers.
constexpr char kTasks[] = R"(
  layers { name: "shared" inputs: "*.embedding" inputs: "numeric"
           mlp { units: 9 activation: TANH output_units: 6 } }
  layers { name: "click" inputs: "shared" linear { units: 1 } }
  layers { name: "kind" inputs: "shared" linear { units: 3 } }
  layers { name: "linear" inputs: "*.linear" sum {} }
  layers { name: "rating" inputs: [ "click", "linear" ] add {} }
  layers { name: "joined" inputs: [ "kind", "click" ]
           mlp { units: 2 activation: TANH output_units: 1 } }
  tasks { name: "click" output: "click" }
  tasks { name: "kind" output: "kind" loss: SOFTMAX_CROSS_ENTROPY weight: 0.5 }
  tasks { name: "rating" output: "rating" loss: MSE weight: 2 }
  tasks { name: "joined" output: "joined" })";

NetworkOptions Options(const std::string& model, Backend* backend, Collective* collective) {
  NetworkOptions options;
  CHECK(google::protobuf::TextFormat::ParseFromString(model, &options.model)) << model;
  options.inputs.numeric_width = 3;
  options.inputs.segments = {{"user", "embedding", 4, 0},
                             {"user", "linear", 1, 0},
                             {"item", "embedding", 4, 0},
                             {"item", "linear", 1, 0},
                             {"item", "unread", 2, 0}};
  options.optimizer.set_learning_rate(0.1f);
  // The gradient of a bias before batch norm is 0 except for rounding errors, which Adagrad would
  // turn into steps of full size.
  if (absl::StrContains(model, "batch_norm")) {
    options.optimizer.mutable_sgd();
  } else {
    options.optimizer.mutable_adagrad();
  }
  options.max_samples = kMaxSamples;
  options.backend = backend;
  options.collective = collective;
  return options;
}

// A rank: a network, and functions that give it global samples [begin, begin + count).
class Rank {
 public:
  explicit Rank(const std::string& model, std::unique_ptr<Collective> collective = nullptr,
                std::unique_ptr<Backend> backend = NewCpuBackend(1))
      : backend_(std::move(backend)),
        collective_(collective != nullptr ? std::move(collective)
                                          : std::move(NewLocalCollectives(1)[0])) {
    auto network = Network::Create(Options(model, backend_.get(), collective_.get()));
    CHECK_OK(network.status());
    network_ = std::move(*network);
  }
  Network* operator->() { return network_.get(); }
  Backend* backend() { return backend_.get(); }

  void Fill(int64_t step, int64_t begin, int64_t count) {
    for (int input = 0; input < network_->num_inputs(); ++input) {
      const Tensor view = network_->input_view(input);
      if (view.empty()) continue;
      std::vector<float> row(view.cols);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t c = 0; c < view.cols; ++c) {
          row[c] = static_cast<float>(
              2 * UniformDouble(RandomBits(input * 100 + c, step, begin + i)) - 1);
        }
        CopyIn(backend(), row, view.Rows(i, 1));
      }
    }
    labels_.clear();
    weights_.clear();
    for (int64_t i = begin; i < begin + count; ++i) {
      labels_.push_back(RandomBits(7, step, i) % 3 == 0 ? 1.0f : 0.0f);
      weights_.push_back(static_cast<float>(1 + RandomBits(8, step, i) % 2));
    }
  }
  absl::Status ForwardBackward(int64_t step, int64_t begin, int64_t count) {
    if (absl::Status s = network_->Forward(count, PassContext::Training(step, begin)); !s.ok())
      return s;
    if (network_->num_tasks() == 1 && groups_.empty()) {
      network_->Loss(labels_, weights_, {});
    } else {
      network_->Loss(Targets(begin));
    }
    return network_->Backward();
  }
  void Train(int64_t step, int64_t begin, int64_t count) {
    Fill(step, begin, count);
    CHECK_OK(ForwardBackward(step, begin, count));
    float weight = static_cast<float>(network_->ReadLoss().weight);
    CHECK_OK(network_->StartReduce());
    CHECK_OK(network_->FinishReduce());
    CHECK_OK(collective_->AllReduceSum(absl::MakeSpan(&weight, 1)));
    CHECK_OK(network_->Step({step}, {1, weight, 0}));
  }
  // From now on, every sample has a group.
  void SetGroups(int64_t count) {
    for (int64_t i = 0; i < count; ++i) groups_.push_back(static_cast<uint64_t>(i % 4));
  }
  std::vector<float> Weights() { return network_->ParameterValues(); }

 private:
  // Each task but the first leaves out some samples; no task counts samples 3, 15, 27, ...
  std::vector<LossTargets> Targets(int64_t begin) {
    masks_.assign(network_->num_tasks(), std::vector<float>(labels_.size(), 1.0f));
    std::vector<LossTargets> targets;
    for (int t = 0; t < network_->num_tasks(); ++t) {
      for (size_t i = 0; i < labels_.size(); ++i) {
        const int64_t sample = begin + static_cast<int64_t>(i);
        if (sample % 12 == 3 || (t > 0 && sample % 5 == t)) masks_[t][i] = 0;
      }
      targets.push_back({labels_, weights_, masks_[t], groups_});
    }
    return targets;
  }

  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<Collective> collective_;
  std::unique_ptr<Network> network_;
  std::vector<float> labels_, weights_;
  std::vector<std::vector<float>> masks_;  // by task
  std::vector<uint64_t> groups_;
};

// Trains `steps` steps of 120 samples, which are cut into `parts`, one part for each rank. Returns
// the weights of each rank.
std::vector<std::vector<float>> TrainInParts(const std::string& model,
                                             const std::vector<int64_t>& parts, int64_t steps) {
  auto collectives = NewLocalCollectives(static_cast<int>(parts.size()));
  std::vector<std::vector<float>> weights(parts.size());
  std::vector<std::thread> threads;
  int64_t begin = 0;
  for (size_t r = 0; r < parts.size(); ++r) {
    threads.emplace_back([&, r, begin] {
      Rank rank(model, std::move(collectives[r]));
      for (int64_t step = 0; step < steps; ++step) rank.Train(step, begin, parts[r]);
      weights[r] = rank.Weights();
    });
    begin += parts[r];
  }
  for (std::thread& thread : threads) thread.join();
  return weights;
}

void ExpectGradientsOfTheLoss(const std::string& model, int64_t groups = 0) {
  constexpr int64_t kSamples = 70;
  Rank rank(model);
  if (groups > 0) rank.SetGroups(groups);
  rank.Fill(0, 0, kSamples);
  ASSERT_TRUE(rank.ForwardBackward(0, 0, kSamples).ok());
  const std::vector<float> gradients = ReadFloats(rank.backend(), rank->gradients());
  const auto loss = [&] {
    CHECK_OK(rank.ForwardBackward(0, 0, kSamples));
    return rank->ReadLoss().loss;
  };
  const auto difference = [&](const Tensor& values, int64_t row, int64_t col) {
    constexpr float kDelta = 1.0f / 256;
    const float kept = ValueAt(rank.backend(), values, row, col);
    SetValueAt(rank.backend(), values, row, col, kept + kDelta);
    const double above = loss();
    SetValueAt(rank.backend(), values, row, col, kept - kDelta);
    const double below = loss();
    SetValueAt(rank.backend(), values, row, col, kept);
    return (above - below) / (2 * kDelta);
  };
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] == 0) continue;  // the gaps between parameters
    const auto col = static_cast<int64_t>(i);
    ASSERT_NEAR(gradients[i], difference(rank->parameters(), 0, col), 0.02) << i;
  }
  for (int input = 1; input < rank->num_inputs(); ++input) {
    if (rank->input_view(input).empty()) continue;
    for (const int64_t i : {int64_t{0}, kSamples - 1}) {
      for (int64_t c = 0; c < rank->input_view(input).cols; ++c) {
        ASSERT_TRUE(rank.ForwardBackward(0, 0, kSamples).ok());
        const float got = ValueAt(rank.backend(), rank->input_gradient(input), i, c);
        ASSERT_NEAR(got, difference(rank->input_view(input), i, c), 0.005)
            << "input " << input << " sample " << i << " column " << c;
      }
    }
  }
}

TEST(NetworkTest, GradientsAreThoseOfTheLoss) { ExpectGradientsOfTheLoss(kSmooth); }

TEST(NetworkTest, GradientsOfAllTasksAddUp) { ExpectGradientsOfTheLoss(kTasks); }

TEST(NetworkTest, GradientsOfPairsAreThoseOfTheLoss) {
  const std::string pairs = std::string(kSmooth) + "tasks { name: 'r' loss: BPR weight: 0.5 }";
  ExpectGradientsOfTheLoss(pairs, /*groups=*/70);
}

TEST(NetworkTest, TheWeightOfAStepIsThatOfTheSamplesThatATaskCounts) {
  Rank rank(kTasks);
  rank.Fill(0, 0, 60);
  ASSERT_TRUE(rank.ForwardBackward(0, 0, 60).ok());
  double weight = 0;
  for (int64_t i = 0; i < 60; ++i) {
    if (i % 12 != 3) weight += static_cast<double>(1 + RandomBits(8, 0, i) % 2);
  }
  EXPECT_EQ(rank->ReadLoss().weight, weight);
  EXPECT_EQ(rank->num_outputs(1), 3);
  EXPECT_EQ(rank->ReadLogits(1).size(), 180u);
}

TEST(NetworkTest, OneTaskOfItsOwnIsTheModelWithoutTasks) {
  const std::string named = std::string(kSmooth) + "tasks { name: 'click' }";
  EXPECT_EQ(TrainInParts(named, {60, 60}, 10), TrainInParts(kSmooth, {60, 60}, 10));
}

TEST(NetworkTest, InputsThatNobodyReadsNeedNotBeFilled) {
  Rank rank(kSmooth);
  EXPECT_TRUE(rank->input_view(5).empty());
  EXPECT_TRUE(rank->input_gradient(5).empty());
  EXPECT_FALSE(rank->input_view(0).empty());
  EXPECT_TRUE(rank->input_gradient(0).empty());
}

// The fm layer reads user.embedding directly. The mlp reads both embeddings only through
// stop_gradient layers, so nothing before these layers is trained through the mlp.
TEST(NetworkTest, NothingIsTrainedThroughAStop) {
  const std::string fm = R"(
    layers { name: "fm" inputs: "user.embedding" inputs: "user.embedding" fm {} }
    layers { name: "linear" inputs: "*.linear" sum {} })";
  Rank rank(fm + R"(
    layers { name: "user_stop" inputs: "user.embedding" stop_gradient {} }
    layers { name: "item_deep" inputs: "item.embedding" linear { units: 2 } }
    layers { name: "item_stop" inputs: "item_deep" stop_gradient {} }
    layers { name: "deep" inputs: "user_stop" inputs: "item_stop" mlp { units: 3 output_units: 1 } }
    layers { name: "logit" inputs: "fm" inputs: "linear" inputs: "deep" add {} })");
  rank.Fill(0, 0, 5);
  for (int round = 0; round < 2; ++round) {
    // Gradients must not be added to what the memory held before.
    rank.backend()->Fill(rank->input_gradient(1), 7);
    rank.backend()->Fill(rank->gradients(), 7);
    ASSERT_TRUE(rank.ForwardBackward(0, 0, 5).ok());
  }
  EXPECT_EQ(ReadFloats(rank.backend(), rank->input_gradient(3).FirstRows(5)),
            std::vector<float>(20, 0));
  const std::vector<float> dlogit =
      ReadFloats(rank.backend(), rank->input_gradient(2).FirstRows(5));
  const std::vector<float> user = ReadFloats(rank.backend(), rank->input_view(1).FirstRows(5));
  const std::vector<float> got = ReadFloats(rank.backend(), rank->input_gradient(1).FirstRows(5));
  for (size_t c = 0; c < got.size(); ++c) {
    // The gradient of fm(u, u) = u . u is 2 u.
    EXPECT_NEAR(got[c], 2 * user[c] * dlogit[c / 4], 1e-5) << c;
  }
  // The weights before a stop_gradient layer must not change; those after it are trained.
  const std::vector<std::string> names = rank->parameter_names();
  ASSERT_EQ(names[0], "item_deep.weight");
  const std::vector<float> gradients = ReadFloats(rank.backend(), rank->gradients());
  for (int c = 0; c < 8; ++c) EXPECT_EQ(gradients[c], 0) << c;
  EXPECT_NE(gradients[32], 0) << "deep/linear_0.weight";
}

TEST(NetworkTest, UnequalPartsAreOneMachine) {
  for (const char* model : {kSmooth, kBatchNorm, kTasks}) {
    const std::vector<float> whole = TrainInParts(model, {120}, 100)[0];
    for (const std::vector<int64_t>& parts :
         {std::vector<int64_t>{60, 60}, std::vector<int64_t>{1, 90, 0, 29}}) {
      const auto ranks = TrainInParts(model, parts, 100);
      for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(ranks[0][i], whole[i], 1e-5) << i;
      for (size_t r = 1; r < ranks.size(); ++r) EXPECT_EQ(ranks[r], ranks[0]) << "rank " << r;
    }
  }
}

// Trains two ranks. Returns rank 0's saved network and its scores.
std::pair<std::string, std::vector<float>> TrainOn(
    const std::string& model, const std::function<std::unique_ptr<Backend>()>& new_backend) {
  auto collectives = NewLocalCollectives(2);
  std::pair<std::string, std::vector<float>> result;
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Rank rank(model, std::move(collectives[r]), new_backend());
      for (int64_t step = 0; step < 5; ++step) rank.Train(step, 60 * r, 60);
      CHECK(rank->CountNonFiniteGradients() == 0);
      if (r != 0) return;
      rank.Fill(5, 0, 100);
      CHECK_OK(rank->Forward(100, PassContext::Evaluation()));
      result.second = rank->ReadLogits();
      result.first = rank->Save();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

// The device runs its operations as late as the contract allows. So if a value is read too early,
// the result is far from the CPU's result. If a result depends on an order that no event ensures,
// it differs between the orders.
TEST(NetworkTest, ADeviceTrainsAsTheCpuDoesWhateverItsOrder) {
  const std::string local_batch_norm =
      absl::StrReplaceAll(kBatchNorm, {{"batch_norm {}", "batch_norm { scope: LOCAL }"}});
  for (const std::string& model :
       {std::string(kSmooth), std::string(kBatchNorm), local_batch_norm}) {
    const auto cpu = TrainOn(model, [] { return NewCpuBackend(1); });
    const auto device = TrainOn(model, [] { return NewHostDeviceBackend({}); });
    ASSERT_EQ(device.second.size(), cpu.second.size());
    for (size_t i = 0; i < cpu.second.size(); ++i) {
      EXPECT_NEAR(device.second[i], cpu.second[i], 1e-4) << i;
    }
    const auto reversed =
        TrainOn(model, [] { return NewHostDeviceBackend({{host::ExecutionOrder::kReverse}}); });
    EXPECT_EQ(reversed.first, device.first);
    EXPECT_EQ(reversed.second, device.second);
  }
}

// Each rank's gradient is finite, but their sum is not.
TEST(NetworkTest, AReducedGradientThatIsTooLargeIsNotFinite) {
  auto collectives = NewLocalCollectives(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Rank rank(kSmooth, std::move(collectives[r]));
      rank.Fill(0, 0, 10);
      CHECK_OK(rank.ForwardBackward(0, 0, 10));
      SetValueAt(rank.backend(), rank->gradients(), 0, 0, 3e38f);
      EXPECT_EQ(rank->CountNonFiniteGradients(), 0);
      ASSERT_TRUE(rank->StartReduce().ok());
      ASSERT_TRUE(rank->FinishReduce().ok());
      EXPECT_EQ(rank->CountNonFiniteGradients(), 1);
      const std::vector<float> before = rank.Weights();
      ASSERT_TRUE(rank->Step({0}, {20, 20, 2}).ok());
      EXPECT_EQ(rank.Weights(), before);
      EXPECT_EQ(rank->ReadControl().overflows, 1u);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(NetworkTest, TrainingLowersTheLoss) {
  Rank rank(kBatchNorm);
  rank.Train(0, 0, 100);
  const double first = rank->ReadLoss().loss;
  for (int64_t step = 1; step < 60; ++step) {
    rank.Fill(0, 0, 100);  // the same samples
    ASSERT_TRUE(rank.ForwardBackward(step, 0, 100).ok());
    ASSERT_TRUE(rank->Step({step}, {1, 150, 0}).ok());
  }
  EXPECT_LT(rank->ReadLoss().loss, 0.8 * first);
}

TEST(NetworkTest, ALogitDependsOnItsRowAlone) {
  for (const char* model : {kSmooth, kBatchNorm}) {
    Rank rank(model);
    rank.Train(0, 0, 100);
    rank.Fill(1, 0, kMaxSamples);
    ASSERT_TRUE(rank->Forward(kMaxSamples, PassContext::Evaluation()).ok());
    const std::vector<float> whole = rank->ReadLogits();
    for (const int64_t part : {1, 7, 64, 128}) {
      for (int64_t begin = 0; begin < kMaxSamples; begin += part) {
        const int64_t count = std::min(part, kMaxSamples - begin);
        rank.Fill(1, begin, count);
        ASSERT_TRUE(rank->Forward(count, PassContext::Evaluation()).ok());
        ASSERT_EQ(rank->ReadLogits(),
                  std::vector<float>(whole.begin() + begin, whole.begin() + begin + count))
            << "parts of " << part;
      }
    }
  }
}

TEST(NetworkTest, SavedAndLoadedGoesOnBitByBit) {
  Rank first(kBatchNorm);
  for (int64_t step = 0; step < 5; ++step) first.Train(step, 0, 100);
  const std::string saved = first->Save();
  Rank second(kBatchNorm);
  ASSERT_NE(second.Weights(), first.Weights());
  ASSERT_TRUE(second->Load(saved, Network::LoadScope::kAll).ok());
  for (int64_t step = 5; step < 10; ++step) {
    first.Train(step, 0, 100);
    second.Train(step, 0, 100);
  }
  EXPECT_EQ(second.Weights(), first.Weights());
  EXPECT_EQ(second->Save(), first->Save());
}

TEST(NetworkTest, LoadTakesAllOrNothing) {
  Rank rank(kBatchNorm);
  Rank other(kSmooth);
  const std::vector<float> before = other.Weights();
  const absl::Status status = other->Load(rank->Save(), Network::LoadScope::kModel);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "dense checkpoint has no \"numeric_linear.weight\", which this model needs");
  std::string damaged = rank->Save();
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_EQ(rank->Load(damaged, Network::LoadScope::kAll).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(other.Weights(), before);
}

TEST(NetworkTest, AModelLoadsUnderAnotherOptimizer) {
  Rank rank(kSmooth);
  rank.Train(0, 0, 50);
  const auto backend = NewCpuBackend(1);
  const auto collectives = NewLocalCollectives(1);
  NetworkOptions options = Options(kSmooth, backend.get(), collectives[0].get());
  options.optimizer.mutable_adam();
  auto adam = Network::Create(options);
  ASSERT_TRUE(adam.ok());
  EXPECT_EQ((*adam)->Load(rank->Save(), Network::LoadScope::kAll).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE((*adam)->Load(rank->Save(), Network::LoadScope::kModel).ok());
  EXPECT_EQ((*adam)->Parameter("deep/linear_0.weight")->values,
            rank->Parameter("deep/linear_0.weight")->values);
}

TEST(NetworkTest, AnInfinityInAnInputReachesTheCount) {
  Rank rank(kSmooth);
  rank.Fill(0, 0, 10);
  ASSERT_TRUE(rank.ForwardBackward(0, 0, 10).ok());
  EXPECT_EQ(rank->CountNonFiniteGradients(), 0);
  SetValueAt(rank.backend(), rank->input_view(1), 3, 0, std::numeric_limits<float>::infinity());
  ASSERT_TRUE(rank.ForwardBackward(0, 0, 10).ok());
  EXPECT_GT(rank->CountNonFiniteGradients(), 0);
  // Values that a larger part left in rows beyond those of this part must not count.
  rank.Fill(1, 0, 3);
  ASSERT_TRUE(rank.ForwardBackward(1, 0, 3).ok());
  EXPECT_EQ(rank->CountNonFiniteGradients(), 0);
}

TEST(NetworkTest, InitialValuesAreFunctionsOfSeedAndName) {
  Rank a(kSmooth), b(kBatchNorm);
  EXPECT_EQ(a->Parameter("deep/linear_1.weight")->values,
            b->Parameter("deep/linear_1.weight")->values);
  EXPECT_NE(a->Parameter("deep/linear_0.weight")->values[0],
            a->Parameter("deep/linear_1.weight")->values[0]);
  EXPECT_EQ(a->Parameter("deep/linear_0.bias")->values, std::vector<float>(9, 0));
  EXPECT_EQ(a->Parameter("nothing").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(a->num_parameters(), 11 * 9 + 9 + 9 * 5 + 5 + 5 + 1 + 3 + 1);
}

TEST(NetworkTest, WorksWithoutNumerics) {
  const auto backend = NewReferenceBackend();
  const auto collectives = NewLocalCollectives(1);
  NetworkOptions options = Options(kSmooth, backend.get(), collectives[0].get());
  options.inputs.numeric_width = 0;
  auto network = Network::Create(options);
  ASSERT_TRUE(network.ok()) << network.status();
  ASSERT_TRUE((*network)->Forward(2, PassContext::Training(0, 0)).ok());
  (*network)->Loss({1, 0}, {}, {});
  ASSERT_TRUE((*network)->Backward().ok());
  ASSERT_TRUE((*network)->Step({0}, {1, 2, 0}).ok());
}

TEST(NetworkTest, RefusesAModelThatDoesNotFit) {
  const auto backend = NewCpuBackend(1);
  const auto collectives = NewLocalCollectives(1);
  NetworkOptions options = Options(R"(layers { name: "logit" inputs: "*.wide" sum {} })",
                                   backend.get(), collectives[0].get());
  EXPECT_EQ(Network::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace satrap
