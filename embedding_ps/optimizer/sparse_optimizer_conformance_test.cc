// Tests the contract of every SparseOptimizer. Reflection finds all kinds of SparseOptimizerConfig,
// so a new kind is tested without being listed here.

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

std::vector<std::string> AllKinds() {
  std::vector<std::string> kinds;
  const auto* oneof = SparseOptimizerConfig::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < oneof->field_count(); ++i) kinds.push_back(oneof->field(i)->name());
  return kinds;
}

// Creates the optimizer of `kind` with its defaults. If `penalties` is false, penalties are turned
// off, because they pull values towards 0 whatever the gradient is.
std::unique_ptr<const SparseOptimizer> OptimizerOfKind(const std::string& kind,
                                                       bool penalties = true) {
  SparseOptimizerConfig config;
  google::protobuf::Message* constants = config.GetReflection()->MutableMessage(
      &config, config.GetDescriptor()->FindFieldByName(kind));
  for (const char* name : {"l1", "weight_decay"}) {
    const auto* field = constants->GetDescriptor()->FindFieldByName(name);
    if (field != nullptr && !penalties) constants->GetReflection()->SetFloat(constants, field, 0);
  }
  auto optimizer = NewSparseOptimizer(config);
  CHECK(optimizer.ok()) << kind << ": " << optimizer.status().ToString();
  return *std::move(optimizer);
}

// A row of one segment, with guard values around it that show writes outside the row.
class FencedRow {
 public:
  FencedRow(const SparseOptimizer& optimizer, int dim)
      : dim_(dim),
        state_size_(optimizer.StateSize(dim)),
        values_(dim + 2 * kFence, kFenceValue),
        state_(state_size_ + 2 * kFence, kFenceValue) {
    for (int i = 0; i < dim; ++i) values()[i] = 0.1f * static_cast<float>(i % 7) - 0.3f;
    optimizer.InitState(state());
  }
  absl::Span<float> values() { return absl::MakeSpan(values_).subspan(kFence, dim_); }
  absl::Span<float> state() { return absl::MakeSpan(state_).subspan(kFence, state_size_); }
  bool FencesStand() const { return Stands(values_, dim_) && Stands(state_, state_size_); }

 private:
  static constexpr int kFence = 16;
  static constexpr float kFenceValue = -12345;
  static bool Stands(const std::vector<float>& v, int size) {
    for (int i = 0; i < kFence; ++i) {
      if (v[i] != kFenceValue || v[kFence + size + i] != kFenceValue) return false;
    }
    return true;
  }
  const int dim_;
  const int state_size_;
  std::vector<float> values_;
  std::vector<float> state_;
};

bool SameBits(absl::Span<const float> a, absl::Span<const float> b) {
  if (a.size() != b.size()) return false;
  // An optimizer without state has an empty span, whose address may be null. memcmp must not get a
  // null pointer.
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

StepContext Context(int64_t step) {
  StepContext context;
  context.step = step;
  context.learning_rate = 0.05f;
  context.normalizer = 4096;
  context.sample_count = 3;
  return context;
}

class SparseOptimizerConformanceTest : public testing::TestWithParam<std::string> {
 protected:
  const std::unique_ptr<const SparseOptimizer> optimizer_ = OptimizerOfKind(GetParam());
};

TEST_P(SparseOptimizerConformanceTest, WritesOnlyItsOwnValuesAndState) {
  for (const int dim : {1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 129}) {
    FencedRow row(*optimizer_, dim);
    for (int step = 0; step < 3; ++step) {
      optimizer_->Step(Context(step), std::vector<float>(dim, 0.5f), row.values(), row.state());
    }
    EXPECT_TRUE(row.FencesStand()) << "dim " << dim;
  }
}

TEST_P(SparseOptimizerConformanceTest, EqualElementsStayEqualInVectorBodyAndTail) {
  for (const int dim : {5, 17, 23, 47}) {
    FencedRow row(*optimizer_, dim);
    std::fill(row.values().begin(), row.values().end(), 0.37f);
    SplitMix64 random(5);
    for (int step = 0; step < 50; ++step) {
      const float g = static_cast<float>(random.NextDouble() - 0.5);
      optimizer_->Step(Context(step), std::vector<float>(dim, g), row.values(), row.state());
      const std::vector<float> first(dim, row.values()[0]);
      ASSERT_TRUE(SameBits(row.values(), first)) << "dim " << dim << ", step " << step;
    }
  }
}

TEST_P(SparseOptimizerConformanceTest, StepsAgainstTheGradient) {
  FencedRow row(*optimizer_, 4);
  const std::vector<float> before(row.values().begin(), row.values().end());
  optimizer_->Step(Context(0), {1.0f, -1.0f, 2.0f, -0.5f}, row.values(), row.state());
  EXPECT_LT(row.values()[0], before[0]);
  EXPECT_GT(row.values()[1], before[1]);
  EXPECT_LT(row.values()[2], before[2]);
  EXPECT_GT(row.values()[3], before[3]);
}

TEST_P(SparseOptimizerConformanceTest, ZeroGradientOnAFreshRowChangesNoValueButByPenalties) {
  const auto optimizer = OptimizerOfKind(GetParam(), /*penalties=*/false);
  FencedRow row(*optimizer, 9);
  const std::vector<float> before(row.values().begin(), row.values().end());
  optimizer->Step(Context(0), std::vector<float>(9, 0.0f), row.values(), row.state());
  EXPECT_TRUE(SameBits(row.values(), before));
}

TEST_P(SparseOptimizerConformanceTest, TinyAndHugeGradientsGiveFiniteValues) {
  for (const float g : {1e-30f, 1e-12f, 1e15f}) {
    FencedRow row(*optimizer_, 17);
    for (int step = 0; step < 5; ++step) {
      optimizer_->Step(Context(step), std::vector<float>(17, g), row.values(), row.state());
    }
    for (const float value : row.values()) EXPECT_TRUE(std::isfinite(value)) << "gradient " << g;
  }
}

TEST_P(SparseOptimizerConformanceTest, SameCallsGiveTheSameBits) {
  FencedRow a(*optimizer_, 21), b(*optimizer_, 21);
  for (FencedRow* row : {&a, &b}) {
    SplitMix64 random(9);
    for (int step = 0; step < 20; ++step) {
      std::vector<float> gradient(21);
      for (float& g : gradient) g = static_cast<float>(random.NextDouble() - 0.5);
      optimizer_->Step(Context(step), gradient, row->values(), row->state());
    }
  }
  EXPECT_TRUE(SameBits(a.values(), b.values()));
  EXPECT_TRUE(SameBits(a.state(), b.state()));
}

TEST_P(SparseOptimizerConformanceTest, WhereValuesAreSteppedAloneTwoSegmentsAreOne) {
  if (!optimizer_->IsElementwise()) return;
  constexpr int kFirst = 1, kBoth = 18;
  const int state_size = optimizer_->StateSize(kBoth);
  ASSERT_TRUE(state_size == 0 || state_size == kBoth);
  const int first_state = optimizer_->StateSize(kFirst);
  FencedRow together(*optimizer_, kBoth), apart(*optimizer_, kBoth);
  SplitMix64 random(3);
  for (int step = 0; step < 20; ++step) {
    std::vector<float> gradient(kBoth);
    for (float& g : gradient) g = static_cast<float>(random.NextDouble() - 0.5);
    optimizer_->Step(Context(step), gradient, together.values(), together.state());
    const auto parts = absl::MakeConstSpan(gradient);
    optimizer_->Step(Context(step), parts.first(kFirst), apart.values().first(kFirst),
                     apart.state().first(first_state));
    optimizer_->Step(Context(step), parts.subspan(kFirst), apart.values().subspan(kFirst),
                     apart.state().subspan(first_state));
  }
  EXPECT_TRUE(SameBits(together.values(), apart.values()));
  EXPECT_TRUE(SameBits(together.state(), apart.state()));
}

// Semantics GLOBAL depends on this (docs/optimizers.md, "Every row in every step").
TEST_P(SparseOptimizerConformanceTest, ZeroGradientsChangeWhatTheIdleStepSays) {
  using IdleStep = SparseOptimizer::IdleStep;
  constexpr int kSteps = 25;
  FencedRow row(*optimizer_, 9);
  for (int step = 0; step < 5; ++step) {
    optimizer_->Step(Context(step), std::vector<float>(9, 0.5f), row.values(), row.state());
  }
  const std::vector<float> values(row.values().begin(), row.values().end());
  const std::vector<float> state(row.state().begin(), row.state().end());
  std::vector<float> aged = state;
  optimizer_->AgeState(kSteps, absl::MakeSpan(aged));
  for (int step = 5; step < 5 + kSteps; ++step) {
    optimizer_->Step(Context(step), std::vector<float>(9, 0.0f), row.values(), row.state());
  }
  if (optimizer_->idle_step() == IdleStep::kValues) {
    EXPECT_FALSE(SameBits(row.values(), values))
        << "idle_step() says kValues, but no value changed";
    return;
  }
  EXPECT_TRUE(SameBits(row.values(), values));
  if (optimizer_->idle_step() == IdleStep::kNothing) {
    EXPECT_TRUE(SameBits(aged, state));
  }
  // FTRL recomputes z from the value, so only the last bits of z differ.
  for (size_t i = 0; i < aged.size(); ++i) {
    EXPECT_NEAR(aged[i], row.state()[i], 1e-6 + 2e-6 * std::abs(aged[i])) << "state " << i;
  }
}

TEST_P(SparseOptimizerConformanceTest, ANewRowAgesAsByZeroGradients) {
  const auto optimizer = OptimizerOfKind(GetParam(), /*penalties=*/false);
  constexpr int kSteps = 25;
  FencedRow row(*optimizer, 9), aged(*optimizer, 9);
  for (int step = 0; step < kSteps; ++step) {
    optimizer->Step(Context(step), std::vector<float>(9, 0.0f), row.values(), row.state());
  }
  optimizer->AgeState(kSteps, aged.state());
  for (FencedRow* each : {&row, &aged}) {
    optimizer->Step(Context(kSteps), std::vector<float>(9, 0.5f), each->values(), each->state());
  }
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(aged.values()[i], row.values()[i], 2e-6);
}

TEST_P(SparseOptimizerConformanceTest, ManyRowsThatOnlyDecayGetTheBitsOfOneStepEach) {
  for (const size_t dim : {1, 2, 7, 8, 10, 17, 32}) {
    const size_t state_size = optimizer_->StateSize(static_cast<int>(dim));
    // The rows have other floats before, between and after the floats that are stepped.
    const size_t stride = dim + state_size + 5;
    constexpr size_t kRows = 6;
    std::vector<float> rows(kRows * stride, -12345);
    for (size_t r = 0; r < kRows; ++r) {
      float* const row = rows.data() + r * stride;
      optimizer_->InitState(absl::MakeSpan(row + dim + 2, state_size));
      SplitMix64 random(r);
      // Each row takes one step more than the previous row.
      for (size_t step = 0; step <= r; ++step) {
        std::vector<float> gradient(dim);
        for (float& g : gradient) g = static_cast<float>(random.NextDouble() - 0.5);
        if (step == 0) std::copy(gradient.begin(), gradient.end(), row + 1);
        optimizer_->Step(Context(step), gradient, absl::MakeSpan(row + 1, dim),
                         absl::MakeSpan(row + dim + 2, state_size));
      }
    }
    for (const float factor : {1.0f, 0.3f}) {
      std::vector<float> one_by_one = rows;
      const SegmentRows all = {rows.data() + 1, rows.data() + dim + 2, dim, stride, kRows};
      if (!optimizer_->StepDecayed(Context(kRows), 0.01f, factor, all)) {
        EXPECT_TRUE(SameBits(rows, one_by_one)) << "refused, and changed something";
        continue;
      }
      for (size_t r = 0; r < kRows; ++r) {
        float* const row = one_by_one.data() + r * stride;
        std::vector<float> gradient(dim);
        for (size_t i = 0; i < dim; ++i) gradient[i] = 0.01f * row[1 + i] * factor;
        optimizer_->Step(Context(kRows), gradient, absl::MakeSpan(row + 1, dim),
                         absl::MakeSpan(row + dim + 2, state_size));
      }
      EXPECT_TRUE(SameBits(rows, one_by_one)) << "dim " << dim << ", factor " << factor;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SparseOptimizerConformanceTest, testing::ValuesIn(AllKinds()),
                         [](const auto& info) { return info.param; });

TEST(NewSparseOptimizerTest, WithoutAKindGivesAdagrad) {
  const auto optimizer = NewSparseOptimizer(SparseOptimizerConfig());
  ASSERT_TRUE(optimizer.ok());
  EXPECT_EQ((*optimizer)->StateSize(16), 16);
}

TEST(NewSparseOptimizerTest, RefusesALearningRateOutOfRange) {
  for (const float rate : {0.0f, -1.0f, INFINITY, NAN}) {
    SparseOptimizerConfig config;
    config.set_learning_rate(rate);
    EXPECT_EQ(NewSparseOptimizer(config).status().code(), absl::StatusCode::kInvalidArgument)
        << rate;
  }
}

}  // namespace
}  // namespace satrap
