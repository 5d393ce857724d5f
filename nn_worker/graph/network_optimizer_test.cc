// Tests what the optimizer's settings do to a network: every kind, settings by name and averaged
// weights, and which values are saved.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"

namespace satrap {
namespace {

constexpr int64_t kSamples = 64;

constexpr char kModel[] = R"(
  layers { name: "deep" inputs: "numeric" mlp { units: 9 activation: TANH output_units: 1 } }
  layers { name: "wide" inputs: "numeric" linear { units: 1 } }
  layers { name: "logit" inputs: "deep" inputs: "wide" add {} })";

class Trained {
 public:
  // `optimizer` is a DenseOptimizerConfig.
  explicit Trained(const std::string& optimizer, DType dtype = DType::kF32,
                   const std::string& model = kModel,
                   std::unique_ptr<Backend> backend = NewHostDeviceBackend({}))
      : model_(model), backend_(std::move(backend)), collectives_(NewLocalCollectives(1)) {
    auto network = Make(optimizer, dtype);
    CHECK_OK(network.status());
    network_ = *std::move(network);
  }
  Network* operator->() { return network_.get(); }

  absl::StatusOr<std::unique_ptr<Network>> Make(const std::string& optimizer, DType dtype) {
    NetworkOptions options;
    CHECK(google::protobuf::TextFormat::ParseFromString(model_, &options.model));
    CHECK(google::protobuf::TextFormat::ParseFromString(optimizer, &options.optimizer))
        << optimizer;
    options.inputs.numeric_width = 4;
    options.max_samples = kSamples;
    options.dtype = dtype;
    options.backend = backend_.get();
    options.collective = collectives_[0].get();
    return Network::Create(options);
  }

  void Fill(int64_t step) {
    const Tensor view = network_->input_view(0);
    std::vector<float> values;
    labels_.clear();
    for (int64_t i = 0; i < kSamples; ++i) {
      float sum = 0;
      for (int64_t c = 0; c < view.cols; ++c) {
        values.push_back(static_cast<float>(2 * UniformDouble(RandomBits(c, step, i)) - 1));
        sum += values.back();
      }
      labels_.push_back(sum > 0 ? 1.0f : 0.0f);
    }
    const Tensor wide = AllocateTensor(backend_.get(), DType::kF32, view.rows, view.cols).value();
    CopyIn(backend_.get(), values, wide);
    backend_->Copy(wide, view, /*add=*/false);
  }
  // Runs everything that comes before Step.
  void Reduce(int64_t step) {
    Fill(step);
    CHECK_OK(network_->Forward(kSamples, PassContext::Training(step, 0)));
    network_->Loss(labels_, {}, {});
    CHECK_OK(network_->Backward());
    CHECK_OK(network_->StartReduce());
    CHECK_OK(network_->FinishReduce());
  }
  // One step, which applies if `finite`. Returns the mean loss before it.
  double Train(int64_t step, bool finite = true) {
    Reduce(step);
    CHECK_OK(network_->Step({step, kSamples}, {kSamples, kSamples, finite ? 0.0f : 1.0f}));
    return network_->ReadLoss().loss / kSamples;
  }
  std::vector<float> Logits() {
    Fill(0);
    CHECK_OK(network_->Forward(kSamples, PassContext::Evaluation()));
    return network_->ReadLogits();
  }
  std::vector<float> Values(const std::string& parameter) {
    return network_->Parameter(parameter).value().values;
  }

 private:
  const std::string model_;
  const std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Collective>> collectives_;
  std::vector<float> labels_;
  std::unique_ptr<Network> network_;
};

const char* const kEveryKind[] = {"sgd {}",
                                  "adagrad {}",
                                  "adam {}",
                                  "momentum {}",
                                  "momentum { form: RATE_OUTSIDE }",
                                  "nesterov {}",
                                  "rmsprop {}",
                                  "rmsprop { centred: true momentum: 0.5 epsilon: 1e-3 }",
                                  "adadelta { epsilon: 1e-4 }",
                                  "amsgrad {}",
                                  "adamw {}",
                                  "ftrl {}",
                                  "ftml {}"};

TEST(NetworkOptimizerTest, EveryKindLowersTheLossAndGoesOnFromASaveBitByBit) {
  for (const std::string kind : kEveryKind) {
    const bool scales = kind.substr(0, 8) != "adadelta";
    const std::string text = (scales ? "learning_rate: 0.02 " : "learning_rate: 1 ") + kind;
    Trained first(text, DType::kF32, kModel, NewCpuHalfBackend(1));
    const double before = first.Train(0);
    for (int64_t step = 1; step < 60; ++step) first.Train(step);
    EXPECT_LT(first.Train(0), 0.9 * before) << kind;
    Trained second(text, DType::kF32, kModel, NewCpuHalfBackend(1));
    const std::string saved = first->Save();
    ASSERT_TRUE(second->Load(saved, Network::LoadScope::kAll).ok()) << kind;
    first.Train(61);
    second.Train(61);
    EXPECT_EQ(first->Save(), second->Save()) << kind;
  }
}

TEST(NetworkOptimizerTest, AStepThatIsNotFiniteChangesNothing) {
  for (const std::string kind : kEveryKind) {
    Trained trained(kind + " averaged_weights {} parameters { pattern: 'wide*' l1: 1 }");
    trained.Train(0);
    const std::string before = trained->Save();
    trained.Train(1, /*finite=*/false);
    EXPECT_EQ(trained->Save(), before) << kind;
  }
}

TEST(NetworkOptimizerTest, FtrlKeepsRandomInitialValues) {
  Trained trained("learning_rate: 1e-6 ftrl { lambda1: 0.5 }");
  const std::vector<float> before = trained.Values("deep/linear_0.weight");
  trained.Train(0);
  const std::vector<float> after = trained.Values("deep/linear_0.weight");
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-5) << i;
}

TEST(NetworkOptimizerTest, SettingsGoByName) {
  Trained plain("learning_rate: 0.5 sgd {}");
  Trained set(
      "learning_rate: 0.5 sgd {} l2: 0.25"
      "  parameters { pattern: 'wide.weight' learning_rate_factor: 0.5 l2: 0 }"
      "  parameters { pattern: 'wide.*' l2: 0 l1: 3 }"
      "  parameters { pattern: 'deep/?inear_0.*' frozen: true }"
      "  parameters { pattern: 'deep/*.weight' l2: 0 weight_decay: 0.125 }");
  std::vector<std::vector<float>> before;
  const std::vector<std::string> names = plain->parameter_names();
  for (const std::string& name : names) before.push_back(plain.Values(name));
  plain.Train(0);
  set.Train(0);
  for (size_t n = 0; n < names.size(); ++n) {
    const std::vector<float> trained = plain.Values(names[n]), got = set.Values(names[n]);
    for (size_t i = 0; i < got.size(); ++i) {
      const float w = before[n][i], step = trained[i] - w;
      float want = w + step - 0.5f * 0.25f * w;  // deep/output.bias
      if (names[n] == "wide.weight") want = w + 0.5f * step;
      if (names[n] == "wide.bias") want = w + step;  // and sign(0) = 0
      if (names[n].find("linear_0") != std::string::npos) want = w;
      if (names[n].find("output.weight") != std::string::npos) want = w + step - 0.0625f * w;
      EXPECT_NEAR(got[i], want, 1e-6) << names[n];
    }
  }
}

TEST(NetworkOptimizerTest, AFactorScalesTheGradientThatEveryKindTakes) {
  for (const std::string kind : kEveryKind) {
    Trained clipped(kind), heavy(kind);
    for (int64_t step = 0; step < 4; ++step) {
      clipped.Reduce(step);
      ASSERT_TRUE(clipped->Step({step, kSamples}, {kSamples, kSamples, 0}, 0.5f).ok());
      heavy.Reduce(step);
      ASSERT_TRUE(heavy->Step({step, kSamples}, {kSamples, 2 * kSamples, 0}).ok());
    }
    EXPECT_EQ(clipped->Save(), heavy->Save()) << kind;
  }
}

TEST(NetworkOptimizerTest, AFactorAndTheSquaresAreOfGradientsWithPenaltiesAndOfNoFrozenParameter) {
  // The rate is 1, so that a step equals the gradient plus the decay.
  constexpr char kSettings[] =
      "learning_rate: 1 sgd {} l2: 0.5"
      "  parameters { pattern: 'wide.weight' l2: 0.25 l1: 0.75 }"
      "  parameters { pattern: 'deep/linear_0.bias' frozen: true }"
      "  parameters { pattern: 'deep/output.weight' weight_decay: 0.125 }";
  Trained whole(kSettings), clipped(kSettings);
  const std::vector<std::string> names = whole->parameter_names();
  std::vector<std::vector<float>> before;
  for (const std::string& name : names) before.push_back(whole.Values(name));
  whole.Train(0);
  clipped.Reduce(0);
  const double squares = clipped->GradientSquares({0, kSamples}, {kSamples, kSamples, 0});
  ASSERT_TRUE(clipped->Step({0, kSamples}, {kSamples, kSamples, 0}, 0.25f).ok());
  double wanted = 0;
  for (size_t n = 0; n < names.size(); ++n) {
    const std::vector<float> full = whole.Values(names[n]), got = clipped.Values(names[n]);
    for (size_t i = 0; i < got.size(); ++i) {
      const double w = before[n][i];
      const double decay = names[n] == "deep/output.weight" ? 0.125 * w : 0;
      const double g = w - full[i] - decay;
      wanted += g * g;
      EXPECT_NEAR(got[i], w - decay - 0.25 * g, 1e-6) << names[n];
    }
  }
  EXPECT_NEAR(squares, wanted, 1e-5 * wanted);
}

TEST(NetworkOptimizerTest, RefusesAPatternThatMatchesNoParameter) {
  Trained any("");
  const absl::Status status = any.Make("parameters { pattern: 'deap*' }", DType::kF32).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "dense_optimizer.parameters[0].pattern: 'deap*' matches no parameter; there are "
            "deep/linear_0.weight, deep/linear_0.bias, deep/output.weight, deep/output.bias, "
            "wide.weight, wide.bias");
}

constexpr char kAveraged[] = "learning_rate: 0.1 sgd {} averaged_weights { decay: 0.9 }";
constexpr char kNotAveraged[] = "learning_rate: 0.1 sgd {}";

TEST(NetworkOptimizerTest, AveragesAreTheMeanOfTheFormula) {
  Trained trained(kAveraged);
  std::vector<float> average = trained.Values("wide.weight");
  for (int64_t step = 0; step < 30; ++step) {
    trained.Train(step);
    const std::vector<float> w = trained.Values("wide.weight");
    const double steps = static_cast<double>(step) + 1;
    const double decay = std::min(0.9, (1 + steps) / (10 + steps));
    for (size_t i = 0; i < w.size(); ++i) {
      average[i] = static_cast<float>(decay * average[i] + (1 - decay) * w[i]);
    }
  }
  const std::vector<NamedArray> arrays = DecodeArrays(trained->Save()).value();
  bool found = false;
  for (const NamedArray& array : arrays) {
    if (array.name != "wide.weight#average") continue;
    found = true;
    for (size_t i = 0; i < average.size(); ++i) EXPECT_NEAR(array.values[i], average[i], 1e-6);
  }
  EXPECT_TRUE(found);
}

TEST(NetworkOptimizerTest, EvaluationsUseAveragesAndTrainingDoesNot) {
  for (const auto& [dtype, on_device] : {std::pair(DType::kF32, false),
                                         {DType::kBF16, false},
                                         {DType::kF32, true},
                                         {DType::kBF16, true}}) {
    const auto backend = [on_device = on_device] {
      return on_device ? NewHostDeviceBackend({}) : NewCpuHalfBackend(1);
    };
    Trained averaged(kAveraged, dtype, kModel, backend());
    Trained plain(kNotAveraged, dtype, kModel, backend());
    for (int64_t step = 0; step < 20; ++step) {
      EXPECT_EQ(averaged.Train(step), plain.Train(step)) << step;
      if (step % 5 == 0) averaged.Logits();
    }
    EXPECT_EQ(averaged.Values("wide.weight"), plain.Values("wide.weight"));
    EXPECT_NE(averaged.Logits(), plain.Logits());
    // A network whose parameters are the averages.
    std::vector<NamedArray> means;
    const std::vector<NamedArray> saved = DecodeArrays(averaged->Save()).value();
    for (NamedArray array : saved) {
      const size_t mark = array.name.find("#average");
      if (mark == std::string::npos) continue;
      array.name.resize(mark);
      means.push_back(array);
    }
    Trained fixed(kNotAveraged, dtype, kModel, backend());
    ASSERT_TRUE(fixed->Load(EncodeArrays(means), Network::LoadScope::kModel).ok());
    EXPECT_EQ(averaged.Logits(), fixed.Logits());
  }
}

// With a rate of 1, the step equals the gradient with L2 and L1.
TEST(NetworkOptimizerTest, ANormIsOfTheStepOfTrainedParametersThatAreNotFrozen) {
  constexpr char kSettings[] =
      "learning_rate: 1 sgd {} l2: 0.25 averaged_weights { decay: 0.9 }"
      "  parameters { pattern: 'wide.*' l1: 0.5 }"
      "  parameters { pattern: 'deep/linear_0.*' frozen: true }";
  Trained whole(kSettings), half(kSettings);
  for (Trained* trained : {&whole, &half}) {
    for (int64_t step = 0; step < 5; ++step) trained->Train(step);
    trained->Reduce(5);
  }
  std::vector<std::vector<float>> before;
  const std::vector<std::string> names = whole->parameter_names();
  for (const std::string& name : names) before.push_back(whole.Values(name));
  const DenseStep step = {5, kSamples};
  const StepTotals totals = {kSamples, kSamples, 0};
  whole.Logits();  // now layers read the averages
  const double squares = whole->GradientSquares(step, totals);
  half.Logits();
  CHECK_OK(whole->Step(step, totals));
  CHECK_OK(half->Step(step, totals, /*clip_factor=*/0.5f));
  double want = 0;
  for (size_t n = 0; n < names.size(); ++n) {
    const std::vector<float> after = whole.Values(names[n]), halfway = half.Values(names[n]);
    for (size_t i = 0; i < after.size(); ++i) {
      const float moved = after[i] - before[n][i];
      want += static_cast<double>(moved) * moved;
      EXPECT_NEAR(halfway[i] - before[n][i], 0.5f * moved, 1e-6) << names[n];
    }
  }
  EXPECT_GT(want, 0.01);
  EXPECT_NEAR(squares, want, 1e-5 * want);
}

TEST(NetworkOptimizerTest, ASaveHoldsParametersAndAveragesWhateverIsEvaluated) {
  Trained first(kAveraged);
  for (int64_t step = 0; step < 5; ++step) first.Train(step);
  const std::string saved = first->Save();
  const std::vector<float> logits = first.Logits();
  EXPECT_EQ(first->Save(), saved);
  for (const auto scope : {Network::LoadScope::kAll, Network::LoadScope::kModel}) {
    Trained second(kAveraged);
    second.Logits();  // now its layers read the averages
    ASSERT_TRUE(second->Load(saved, scope).ok());
    EXPECT_EQ(second.Logits(), logits);
    EXPECT_EQ(second->Save(), saved);
  }
}

TEST(NetworkOptimizerTest, AModelWithoutAveragesIsItsOwnAverage) {
  Trained plain(kNotAveraged), averaged(kAveraged);
  plain.Train(0);
  EXPECT_FALSE(averaged->Load(plain->Save(), Network::LoadScope::kAll).ok());
  ASSERT_TRUE(averaged->Load(plain->Save(), Network::LoadScope::kModel).ok());
  EXPECT_EQ(averaged.Logits(), plain.Logits());
}

TEST(NetworkOptimizerTest, AveragesThatNobodyReadsAreNoPartOfAModel) {
  Trained plain(kNotAveraged), averaged(kAveraged);
  averaged.Train(0);
  EXPECT_FALSE(plain->Load(averaged->Save(), Network::LoadScope::kAll).ok());
  ASSERT_TRUE(plain->Load(averaged->Save(), Network::LoadScope::kModel).ok());
  EXPECT_EQ(plain.Values("wide.weight"), averaged.Values("wide.weight"));
}

TEST(NetworkOptimizerTest, AfterAWarmStartAveragesBeginWithTheModel) {
  Trained plain(kNotAveraged), averaged(kAveraged), another(kAveraged);
  averaged.Train(0);
  plain.Train(1);
  ASSERT_TRUE(averaged->StartFrom(plain->Save(), WarmStartConfig(), 2).ok());
  EXPECT_EQ(averaged.Logits(), plain.Logits());
  // A run that starts from a model with averages takes over these averages.
  averaged.Train(0);
  const auto taken = another->StartFrom(averaged->Save(), WarmStartConfig(), 1);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->ignored.empty());
  EXPECT_EQ(another.Values("wide.weight"), averaged.Values("wide.weight"));
}

TEST(NetworkOptimizerTest, GoesOnWithoutParametersAndSoWithoutState) {
  constexpr char kSum[] = R"(layers { name: "logit" inputs: "numeric" sum {} })";
  Trained saved("adam {}", DType::kF32, kSum), other("adam {}", DType::kF32, kSum);
  const absl::Status status = other->Load(saved->Save(), Network::LoadScope::kAll);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(NetworkOptimizerTest, TellsWhoseStateASaveHolds) {
  Trained adam("adam {}"), amsgrad("amsgrad {}"), sgd("sgd {}"), inside("momentum {}"),
      outside("momentum { form: RATE_OUTSIDE }");
  const auto takes_state = [](Trained* to, Trained* from) {
    return (*to)->StartFrom((*from)->Save(), WarmStartConfig(), 1)->has_state;
  };
  Trained other_constants("adam { beta1: 0.5 }");
  EXPECT_TRUE(takes_state(&other_constants, &adam));
  EXPECT_FALSE(takes_state(&amsgrad, &adam));
  EXPECT_FALSE(takes_state(&adam, &sgd));
  EXPECT_TRUE(takes_state(&sgd, &adam)) << "it has none";
  EXPECT_FALSE(takes_state(&inside, &outside));
  EXPECT_FALSE(adam->StartFrom("damaged", WarmStartConfig(), 1).ok());
  EXPECT_EQ(
      amsgrad->Load(adam->Save(), Network::LoadScope::kAll).message(),
      "dense checkpoint holds the state of adam, but this job's dense_optimizer needs that of "
      "amsgrad");
  EXPECT_EQ(
      sgd->Load(adam->Save(), Network::LoadScope::kAll).message(),
      "dense checkpoint holds the state of adam, but this job's dense_optimizer needs that of "
      "no optimizer");
}

}  // namespace
}  // namespace satrap
