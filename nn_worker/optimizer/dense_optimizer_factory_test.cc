#include "nn_worker/optimizer/dense_optimizer_factory.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/config/field_path.h"
#include "common/config/testing/range_check.h"
#include "common/config/testing/validation_check.h"
#include "common/learning_rate/learning_rate_schedule.h"
#include "common/numeric/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

DenseOptimizerConfig Parse(const std::string& text) {
  DenseOptimizerConfig config;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

// One parameter in double precision, stepped as the papers' formulas say.
class ScalarReference {
 public:
  ScalarReference(const DenseOptimizerConfig& config, double w) : config_(config), w_(w) {
    if (config.has_adagrad()) a_ = config.adagrad().initial_accumulator();
    if (!config.has_ftrl()) return;
    // This is the state from which Algorithm 1 computes the parameter's initial value.
    const auto& ftrl = config.ftrl();
    a_ = ftrl.initial_accumulator();
    m_ = -w * ((ftrl.beta() + std::sqrt(a_)) / config.learning_rate() + ftrl.lambda2()) -
         Sign(w) * ftrl.lambda1();
  }

  double Step(int64_t step, double gradient_sum, double weight, double factor) {
    const double lr = config_.learning_rate() *
                      LearningRateFactor(config_.learning_rate_schedule(), step) * factor;
    const double g = gradient_sum / weight + config_.l2() * w_;
    const double t = static_cast<double>(step) + 1;
    switch (config_.kind_case()) {
      case DenseOptimizerConfig::kSgd:
        w_ -= lr * g;
        break;
      case DenseOptimizerConfig::kAdagrad:
        a_ += g * g;
        w_ -= lr * g / (std::sqrt(a_) + config_.adagrad().epsilon());
        break;
      case DenseOptimizerConfig::kMomentum:
        MomentumStep(config_.momentum(), lr, g);
        break;
      case DenseOptimizerConfig::kNesterov: {
        // The classical form: a momentum step from the look-ahead point.
        const double mu = config_.nesterov().mu();
        const double base = w_ - mu * m_;
        m_ = mu * m_ - lr * g;
        w_ = base + m_ + mu * m_;
        break;
      }
      case DenseOptimizerConfig::kRmsprop:
        RmsPropStep(config_.rmsprop(), lr, g);
        break;
      case DenseOptimizerConfig::kAdadelta: {
        const double rho = config_.adadelta().rho(), epsilon = config_.adadelta().epsilon();
        a_ = rho * a_ + (1 - rho) * g * g;
        const double d = std::sqrt((v_ + epsilon) / (a_ + epsilon)) * g;
        v_ = rho * v_ + (1 - rho) * d * d;
        w_ -= lr * d;
        break;
      }
      case DenseOptimizerConfig::kAmsgrad: {
        const auto& c = config_.amsgrad();
        a_ = std::max(a_, Moments(c, g));
        w_ -= lr * (m_ / (1 - std::pow(c.beta1(), t))) /
              (std::sqrt(a_ / (1 - std::pow(c.beta2(), t))) + c.epsilon());
        break;
      }
      case DenseOptimizerConfig::kAdamw: {
        const double before = w_;
        AdamStep(config_.adamw(), lr, g, t);
        w_ -= lr * config_.adamw().weight_decay() * before;
        break;
      }
      case DenseOptimizerConfig::kFtrl:
        FtrlStep(config_.ftrl(), lr, g);
        break;
      case DenseOptimizerConfig::kFtml:
        FtmlStep(config_.ftml(), lr, g, t);
        break;
      default:
        AdamStep(config_.adam(), lr, g, t);
    }
    return w_;
  }

 private:
  static double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

  // Updates both moments. Returns the second one.
  template <typename Config>
  double Moments(const Config& c, double g) {
    m_ = c.beta1() * m_ + (1.0 - c.beta1()) * g;
    v_ = c.beta2() * v_ + (1.0 - c.beta2()) * g * g;
    return v_;
  }

  template <typename Config>
  void AdamStep(const Config& c, double lr, double g, double t) {
    Moments(c, g);
    const double m_hat = m_ / (1 - std::pow(c.beta1(), t));
    const double v_hat = v_ / (1 - std::pow(c.beta2(), t));
    w_ -= lr * m_hat / (std::sqrt(v_hat) + c.epsilon());
  }

  void MomentumStep(const OptimizerConfig::Momentum& c, double lr, double g) {
    if (c.form() == OptimizerConfig::Momentum::RATE_INSIDE) {
      m_ = c.mu() * m_ - lr * g;
      w_ += m_;
    } else {
      m_ = c.mu() * m_ + (1.0 - c.dampening()) * g;
      w_ -= lr * m_;
    }
  }

  void RmsPropStep(const OptimizerConfig::RmsProp& c, double lr, double g) {
    a_ = c.rho() * a_ + (1.0 - c.rho()) * g * g;
    v_ = c.rho() * v_ + (1.0 - c.rho()) * g;
    const double square = c.centred() ? a_ - v_ * v_ : a_;
    const double divisor =
        c.epsilon_in_root() ? std::sqrt(square + c.epsilon()) : std::sqrt(square) + c.epsilon();
    m_ = c.momentum() * m_ + lr * g / divisor;
    w_ -= m_;
  }

  // McMahan et al. 2013, Algorithm 1.
  void FtrlStep(const OptimizerConfig::Ftrl& c, double lr, double g) {
    const double sigma = (std::sqrt(a_ + g * g) - std::sqrt(a_)) / lr;
    m_ += g - sigma * w_;
    a_ += g * g;
    w_ = std::abs(m_) <= c.lambda1()
             ? 0
             : -(m_ - Sign(m_) * c.lambda1()) / ((c.beta() + std::sqrt(a_)) / lr + c.lambda2());
  }

  // Follows Zheng and Kwok 2017, Algorithm 1. z begins at -d w, so that w keeps its initial value.
  void FtmlStep(const OptimizerConfig::Ftml& c, double lr, double g, double t) {
    v_ = c.beta2() * v_ + (1.0 - c.beta2()) * g * g;
    const double d = (1 - std::pow(c.beta1(), t)) / lr *
                     (std::sqrt(v_ / (1 - std::pow(c.beta2(), t))) + c.epsilon());
    m_ = c.beta1() * m_ + (1.0 - c.beta1()) * g - (d - c.beta1() * a_) * w_;
    a_ = d;
    w_ = -m_ / d;
  }

  const DenseOptimizerConfig config_;
  double w_;
  double a_ = 0, m_ = 0, v_ = 0;
};

// Makes steps as the network does, for one range to which the settings of all parameters apply.
class Range {
 public:
  Range(const DenseOptimizerConfig& config, const std::vector<float>& w)
      : config_(config),
        optimizer_(NewDenseOptimizer(config).value()),
        backend_(NewCpuBackend(1)),
        count_(static_cast<int64_t>(w.size())),
        w_(NewTensor(count_)),
        gradient_(NewTensor(count_)),
        sums_(NewTensor(kNumStepSums)),
        control_(AllocateControl(backend_.get()).value()) {
    CopyIn(backend_.get(), w, w_);
    for (const DenseOptimizer::State& state : optimizer_.states) {
      states_.push_back(NewTensor(count_));
      backend_->Fill(states_.back(), state.initial_value);
    }
  }

  std::vector<float> Step(const DenseStep& step, const std::vector<float>& gradient, float weight) {
    CopyIn(backend_.get(), gradient, gradient_);
    CopyIn(backend_.get(), std::vector<float>{1, weight, 0}, sums_);
    backend_->DecideStep(PlanOf(config_, optimizer_, step), sums_, control_);
    backend_->OptimizerStep(control_, optimizer_.rule, gradient_, w_, states_, {});
    return ReadFloats(backend_.get(), w_);
  }

 private:
  Tensor NewTensor(int64_t count) {
    return AllocateTensor(backend_.get(), DType::kF32, 1, count).value();
  }

  const DenseOptimizerConfig config_;
  const DenseOptimizer optimizer_;
  const std::unique_ptr<Backend> backend_;
  const int64_t count_;
  const Tensor w_, gradient_, sums_, control_;
  std::vector<Tensor> states_;
};

// Makes a hundred steps with gradients in [-largest / 2, largest / 2), and expects the weights of a
// ScalarReference. Step s has `weight_of(s)` samples and the factor `factor_of(s)` of its rate.
void ExpectHundredSteps(const std::string& text, double largest, float (*weight_of)(int64_t),
                        double (*factor_of)(int64_t)) {
  constexpr int64_t kCount = 37;
  const DenseOptimizerConfig config = Parse(text);
  std::vector<float> w(kCount), gradient(kCount);
  std::vector<ScalarReference> references;
  for (int64_t i = 0; i < kCount; ++i) {
    w[i] = static_cast<float>(UniformDouble(RandomBits(1, i)) - 0.5);
    references.emplace_back(config, w[i]);
  }
  Range range(config, w);
  for (int64_t step = 0; step < 100; ++step) {
    const double factor = factor_of(step);
    const float weight = weight_of(step);
    for (int64_t i = 0; i < kCount; ++i) {
      gradient[i] = static_cast<float>(largest * (UniformDouble(RandomBits(2, step, i)) - 0.5));
    }
    w = range.Step({step, 1, factor}, gradient, weight);
    for (int64_t i = 0; i < kCount; ++i) {
      const double want = references[i].Step(step, gradient[i], weight, factor);
      ASSERT_NEAR(w[i], want, 2e-6) << text << " step " << step;
    }
  }
}

TEST(DenseOptimizerFactoryTest, HundredRandomStepsAreThoseOfAScalarReference) {
  for (const char* text :
       {"learning_rate: 0.02 sgd {}",
        "learning_rate: 0.01 sgd {} l2: 0.01 learning_rate_schedule { warmup_steps: 30 }",
        "learning_rate: 0.02 adagrad { initial_accumulator: 0.1 }",
        "learning_rate: 0.01 adagrad { epsilon: 1e-3 } l2: 0.02",
        "learning_rate: 0.01 adam {}",
        "adam { beta1: 0.5 beta2: 0.9 epsilon: 1e-4 } learning_rate_schedule { warmup_steps: 10 }",
        "",
        "learning_rate: 0.01 momentum {} l2: 0.01",
        "learning_rate: 0.01 momentum { form: RATE_OUTSIDE mu: 0.8 dampening: 0.5 }",
        "learning_rate: 0.01 nesterov {} l2: 0.01",
        "learning_rate: 0.01 rmsprop {}",
        "learning_rate: 0.01 rmsprop { epsilon: 1e-3 epsilon_in_root: true momentum: 0.5 }",
        "learning_rate: 0.01 rmsprop { epsilon: 0.1 epsilon_in_root: true centred: true }",
        "learning_rate: 0.01 rmsprop { epsilon: 0.1 centred: true momentum: 0.9 rho: 0.99 }",
        "learning_rate: 1 adadelta {}",
        "learning_rate: 0.5 adadelta { rho: 0.9 epsilon: 1e-4 }",
        "learning_rate: 0.01 amsgrad {}",
        "learning_rate: 0.01 amsgrad { beta1: 0.5 beta2: 0.9 epsilon: 1e-4 } l2: 0.02",
        "learning_rate: 0.01 adamw {}",
        "learning_rate: 0.01 adamw { weight_decay: 0.5 }",
        "learning_rate: 0.01 ftml {}",
        "learning_rate: 0.01 ftml { beta1: 0.9 } l2: 0.01"}) {
    ASSERT_NO_FATAL_FAILURE(ExpectHundredSteps(
        text, 100, [](int64_t step) { return 64.0f + static_cast<float>(step); },
        [](int64_t step) { return step % 2 == 0 ? 1.0 : 0.25; }));
  }
}

// The rate is constant here: when a rate changes, the weights of the published algorithm jump, but
// those of this rule do not (embedding_ps/optimizer/ftrl.h).
TEST(DenseOptimizerFactoryTest, HundredRandomStepsOfFtrlAreThoseOfItsAlgorithm) {
  for (const char* text :
       {"learning_rate: 0.05 ftrl {}", "learning_rate: 0.05 ftrl { initial_accumulator: 0.1 }",
        "learning_rate: 0.1 ftrl { beta: 0.5 lambda1: 0.3 lambda2: 0.2 }"}) {
    ASSERT_NO_FATAL_FAILURE(ExpectHundredSteps(
        text, 1, [](int64_t) { return 1.0f; }, [](int64_t) { return 1.0; }));
  }
}

TEST(DenseOptimizerFactoryTest, EveryStateArrayOfEveryKindHasANameOfItsOwn) {
  std::set<std::string> names;
  size_t count = 0;
  for (const char* text :
       {"sgd {}", "adagrad {}", "adam {}", "momentum {}", "momentum { form: RATE_OUTSIDE }",
        "nesterov {}", "rmsprop { centred: true momentum: 0.5 }", "adadelta {}", "amsgrad {}",
        "adamw {}", "ftrl {}", "ftml {}"}) {
    const DenseOptimizer optimizer = NewDenseOptimizer(Parse(text)).value();
    for (const DenseOptimizer::State& state : optimizer.states) {
      names.insert(state.name);
      ++count;
    }
  }
  EXPECT_EQ(names.size(), count);
}

TEST(DenseOptimizerFactoryTest, RefusesValuesOutOfRange) {
  EXPECT_EQ(NewDenseOptimizer(Parse("learning_rate: -1")).status().message(),
            "dense_optimizer.learning_rate: must be finite and positive, got -1");
  EXPECT_EQ(NewDenseOptimizer(Parse("adam { beta1: 1 }")).status().message(),
            "dense_optimizer.adam.beta1: must be in [0, 1), got 1");
  EXPECT_FALSE(NewDenseOptimizer(Parse("adam { epsilon: 0 }")).ok());
  EXPECT_FALSE(NewDenseOptimizer(Parse("adagrad { initial_accumulator: -1 }")).ok());
  EXPECT_FALSE(NewDenseOptimizer(Parse("l2: -0.5")).ok());
}

TEST(DenseOptimizerFactoryTest, EveryNumericFieldHasARange) {
  EXPECT_EQ(FieldsOf(BordersOf(DenseOptimizerConfig::descriptor())),
            NumericFields(DenseOptimizerConfig::descriptor()));
}

TEST(DenseOptimizerFactoryTest, ValidatorAndFactoryAgreeOnTheBordersOfEveryField) {
  const auto expect = [](const BorderCase& border, const std::string& value, bool legal) {
    const std::string& field = border.field;
    JobConfig job = SmallJob();
    DenseOptimizerConfig* config = job.mutable_dense_optimizer();
    config->add_parameters()->set_pattern("*");
    for (const std::string& with : border.with) ASSERT_TRUE(SetField(with, config).ok()) << with;
    ASSERT_TRUE(SetField(absl::StrCat(field, "=", value), config).ok()) << field;
    EXPECT_EQ(ProblemsOf(job).empty(), legal) << field << " " << value;
    const absl::Status status = NewDenseOptimizer(*config).status();
    EXPECT_EQ(status.ok(), legal) << field << " " << value << ": " << status;
  };
  for (const BorderCase& border : BordersOf(DenseOptimizerConfig::descriptor(), OptimizerRules())) {
    for (const std::string& value : border.good) expect(border, value, true);
    for (const std::string& value : border.bad) expect(border, value, false);
  }
}

TEST(DenseOptimizerFactoryTest, WarmsUpLinearly) {
  const DenseOptimizerConfig config =
      Parse("learning_rate: 0.5 learning_rate_schedule { warmup_steps: 4 }");
  const auto optimizer = NewDenseOptimizer(config);
  const auto rate = [&](int64_t step, double factor) {
    return PlanOf(config, *optimizer, {step, 8, factor}).learning_rate;
  };
  EXPECT_FLOAT_EQ(rate(0, 1), 0.125f);
  EXPECT_FLOAT_EQ(rate(3, 1), 0.5f);
  EXPECT_FLOAT_EQ(rate(100, 0.1), 0.05f);
}

TEST(DenseOptimizerFactoryTest, AfterAWarmStartCorrectionsGoOnAndSchedulesBeginAnew) {
  const DenseOptimizerConfig config =
      Parse("learning_rate: 0.5 adam {} learning_rate_schedule { warmup_steps: 4 }");
  const auto optimizer = NewDenseOptimizer(config);
  const StepPlan plan = PlanOf(config, *optimizer, {0, 8, 1}, {/*steps_before=*/1000, 0});
  const StepPlan longer = PlanOf(config, *optimizer, {1000, 8, 1});
  EXPECT_EQ(plan.correction1, longer.correction1);
  EXPECT_EQ(plan.correction2, longer.correction2);
  EXPECT_NE(plan.correction2, PlanOf(config, *optimizer, {0, 8, 1}).correction2);
  EXPECT_FLOAT_EQ(plan.learning_rate, 0.125f);
  EXPECT_EQ(plan.step, 0u);
}

TEST(DenseOptimizerFactoryTest, TheWarmUpOfAStateThatBeganAnewIsOnTopOfTheSchedule) {
  const DenseOptimizerConfig config =
      Parse("learning_rate: 0.5 learning_rate_schedule { warmup_steps: 2 }");
  const auto optimizer = NewDenseOptimizer(config);
  const auto rate = [&](int64_t step) {
    return PlanOf(config, *optimizer, {step, 8, 1}, {0, /*warmup_steps=*/4}).learning_rate;
  };
  EXPECT_FLOAT_EQ(rate(0), 0.0625f);
  EXPECT_FLOAT_EQ(rate(1), 0.25f);
  EXPECT_FLOAT_EQ(rate(3), 0.5f);
}

}  // namespace
}  // namespace satrap
