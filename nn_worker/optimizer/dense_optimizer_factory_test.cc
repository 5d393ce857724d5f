#include "nn_worker/optimizer/dense_optimizer_factory.h"

#include <cmath>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/config/field_path.h"
#include "common/config/range_check.h"
#include "common/config/validation_check.h"
#include "common/numeric/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/backend/deferred_backend.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

DenseOptimizerConfig Parse(const std::string& text) {
  DenseOptimizerConfig config;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

// One parameter, in double, step by step as the formulas of the headers say.
class ScalarReference {
 public:
  ScalarReference(const DenseOptimizerConfig& config, double w) : config_(config), w_(w) {
    if (config.has_adagrad()) a_ = config.adagrad().initial_accumulator();
  }

  double Step(int64_t step, double gradient_sum, double weight, double factor) {
    double lr = config_.learning_rate() * factor;
    const auto warmup_steps = config_.learning_rate_schedule().warmup_steps();
    if (step + 1 < warmup_steps) lr *= (step + 1.0) / static_cast<double>(warmup_steps);
    const double g = gradient_sum / weight + config_.l2() * w_;
    if (config_.has_sgd()) {
      w_ -= lr * g;
    } else if (config_.has_adagrad()) {
      a_ += g * g;
      w_ -= lr * g / (std::sqrt(a_) + config_.adagrad().epsilon());
    } else {
      const auto& adam = config_.adam();
      m_ = adam.beta1() * m_ + (1.0 - adam.beta1()) * g;
      v_ = adam.beta2() * v_ + (1.0 - adam.beta2()) * g * g;
      const double m_hat = m_ / (1 - std::pow(adam.beta1(), step + 1));
      const double v_hat = v_ / (1 - std::pow(adam.beta2(), step + 1));
      w_ -= lr * m_hat / (std::sqrt(v_hat) + adam.epsilon());
    }
    return w_;
  }

 private:
  const DenseOptimizerConfig config_;
  double w_;
  double a_ = 0, m_ = 0, v_ = 0;
};

TEST(DenseOptimizerFactoryTest, HundredRandomStepsAreThoseOfAScalarReference) {
  constexpr int64_t kCount = 37;
  const auto backend = NewDeferredBackend(NewCpuBackend(1), HostAccess::kNone);
  for (const char* text :
       {"learning_rate: 0.1 sgd {}",
        "learning_rate: 0.05 sgd {} l2: 0.01 learning_rate_schedule { warmup_steps: 30 }",
        "learning_rate: 0.1 adagrad { initial_accumulator: 0.1 }",
        "learning_rate: 0.01 adagrad { epsilon: 1e-3 } l2: 0.02", "learning_rate: 0.01 adam {}",
        "adam { beta1: 0.5 beta2: 0.9 epsilon: 1e-4 } learning_rate_schedule { warmup_steps: 10 }",
        ""}) {
    const DenseOptimizerConfig config = Parse(text);
    const auto optimizer = NewDenseOptimizer(config);
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();
    std::vector<float> w(kCount), gradient(kCount);
    const auto new_tensor = [&] {
      return AllocateTensor(backend.get(), DType::kF32, 1, kCount).value();
    };
    const Tensor weights = new_tensor(), gradients = new_tensor();
    const Tensor sums = AllocateTensor(backend.get(), DType::kF32, 1, kNumStepSums).value();
    const Tensor control = AllocateControl(backend.get()).value();
    std::vector<Tensor> slots;
    for (size_t s = 0; s < (*optimizer)->slot_names().size(); ++s) {
      slots.push_back(new_tensor());
      backend->Fill(slots[s], (*optimizer)->initial_value(static_cast<int>(s)));
    }
    std::vector<ScalarReference> references;
    for (int64_t i = 0; i < kCount; ++i) {
      w[i] = static_cast<float>(UniformDouble(RandomBits(1, i)) - 0.5);
      references.emplace_back(config, w[i]);
    }
    CopyIn(backend.get(), w, weights);
    for (int64_t step = 0; step < 100; ++step) {
      const DenseStep dense{step, 1, step % 2 == 0 ? 1.0 : 0.25};
      const float weight = 64.0f + static_cast<float>(step);
      for (int64_t i = 0; i < kCount; ++i) {
        gradient[i] = static_cast<float>(100 * (UniformDouble(RandomBits(2, step, i)) - 0.5));
      }
      CopyIn(backend.get(), gradient, gradients);
      CopyIn(backend.get(), std::vector<float>{1, weight, 0}, sums);
      backend->DecideStep(PlanOf(config, **optimizer, dense), sums, control);
      (*optimizer)->Step(backend.get(), control, config.l2(), gradients, weights, slots);
      w = ReadFloats(backend.get(), weights);
      for (int64_t i = 0; i < kCount; ++i) {
        const double want =
            references[i].Step(step, gradient[i], weight, dense.learning_rate_factor);
        ASSERT_NEAR(w[i], want, 2e-5 * (1 + std::abs(want))) << text << " step " << step;
      }
    }
  }
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

TEST(DenseOptimizerFactoryTest, EveryNumericFieldHasItsBordersTested) {
  EXPECT_EQ(FieldsOf(DenseOptimizerBorders()), NumericFields(DenseOptimizerConfig::descriptor()));
}

TEST(DenseOptimizerFactoryTest, ValidatorAndFactoryAgreeOnTheBordersOfEveryField) {
  const auto expect = [](const BorderCase& border, const std::string& value, bool legal) {
    const std::string& field = border.field;
    JobConfig job = SmallJob();
    DenseOptimizerConfig* config = job.mutable_dense_optimizer();
    for (const std::string& with : border.with) ASSERT_TRUE(SetField(with, config).ok()) << with;
    ASSERT_TRUE(SetField(absl::StrCat(field, "=", value), config).ok()) << field;
    EXPECT_EQ(ProblemsOf(job).empty(), legal) << field << " " << value;
    const absl::Status status = NewDenseOptimizer(*config).status();
    EXPECT_EQ(status.ok(), legal) << field << " " << value << ": " << status;
  };
  for (const BorderCase& border : DenseOptimizerBorders()) {
    for (const std::string& value : border.good) expect(border, value, true);
    for (const std::string& value : border.bad) expect(border, value, false);
  }
}

TEST(DenseOptimizerFactoryTest, WarmsUpLinearly) {
  const DenseOptimizerConfig config =
      Parse("learning_rate: 0.5 learning_rate_schedule { warmup_steps: 4 }");
  const auto optimizer = NewDenseOptimizer(config);
  const auto rate = [&](int64_t step, double factor) {
    return PlanOf(config, **optimizer, {step, 8, factor}).learning_rate;
  };
  EXPECT_FLOAT_EQ(rate(0, 1), 0.125f);
  EXPECT_FLOAT_EQ(rate(3, 1), 0.5f);
  EXPECT_FLOAT_EQ(rate(100, 0.1), 0.05f);
}

}  // namespace
}  // namespace satrap
