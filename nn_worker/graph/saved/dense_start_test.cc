#include "nn_worker/graph/saved/dense_start.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

using Names = std::vector<std::string>;

NamedArray Array(const std::string& name, int64_t rows, int64_t cols) {
  return {name, rows, cols, std::vector<float>(rows * cols, 1)};
}

class DenseStartTest : public testing::Test {
 protected:
  absl::StatusOr<DenseTake> Plan() {
    return PlanDenseTake(config_, /*model_step=*/70, saved_, values_, states_);
  }

  WarmStartConfig config_;
  std::vector<NamedArray> saved_ = {Array("deep.weight", 3, 2), Array("deep.bias", 1, 2),
                                    Array("deep.weight#adam.m", 3, 2),
                                    Array("deep.bias#adam.m", 1, 2)};
  std::vector<ArrayShape> values_ = {{"deep.weight", 3, 2}, {"deep.bias", 1, 2}};
  std::vector<ArrayShape> states_ = {{"deep.weight#adam.m", 3, 2}, {"deep.bias#adam.m", 1, 2}};
};

TEST_F(DenseStartTest, TakesValuesAndStateAndCountsItsStepsOn) {
  const auto take = Plan();
  ASSERT_TRUE(take.ok()) << take.status();
  EXPECT_EQ(take->arrays.size(), 4u);
  EXPECT_EQ(take->arrays.at("deep.bias#adam.m"), &saved_[3]);
  EXPECT_TRUE(take->has_state);
  EXPECT_EQ(take->start.steps_before, 70);
  EXPECT_EQ(take->start.warmup_steps, 0);
  EXPECT_TRUE(take->fresh.empty() && take->ignored.empty());
}

TEST_F(DenseStartTest, StepsAddUpOverRunsThatStartFromEachOther) {
  saved_.push_back(*EncodeStart({/*steps_before=*/100, /*warmup_steps=*/5}));
  const auto take = Plan();
  ASSERT_TRUE(take.ok()) << take.status();
  EXPECT_EQ(take->start.steps_before, 170);
  EXPECT_EQ(take->start.warmup_steps, 0) << "that of the run before";
  EXPECT_TRUE(take->ignored.empty());
}

TEST_F(DenseStartTest, WithoutTheStateTheRateWarmsUp) {
  config_.set_warmup_steps(40);
  const auto expect_warm_up = [&](const char* why) {
    const auto take = Plan();
    ASSERT_TRUE(take.ok()) << take.status();
    EXPECT_FALSE(take->has_state) << why;
    EXPECT_EQ(take->start.warmup_steps, 40) << why;
    EXPECT_EQ(take->start.steps_before, 0) << why;
    for (const auto& [name, array] : take->arrays)
      EXPECT_EQ(name.find('#'), Names::value_type::npos);
  };
  config_.set_optimizer_state(false);
  expect_warm_up("not wished");
  config_.set_optimizer_state(true);
  states_[0].name = "deep.weight#adagrad.a";
  expect_warm_up("another kind");
  states_[0].name = "deep.weight#adam.m";
  values_.push_back({"new.weight", 1, 1});
  expect_warm_up("a parameter begins anew");
}

TEST_F(DenseStartTest, AnOptimizerWithoutStateNeedsNoWarmUp) {
  states_.clear();
  EXPECT_TRUE(Plan()->has_state);
  EXPECT_EQ(Plan()->start.warmup_steps, 0);
}

TEST_F(DenseStartTest, ListsWhatOnlyOneOfBothHas) {
  values_.push_back({"head.weight", 2, 1});
  saved_.push_back(Array("old_head.weight", 9, 9));
  const auto take = Plan();
  ASSERT_TRUE(take.ok()) << take.status();
  EXPECT_EQ(take->fresh, Names{"head.weight"});
  EXPECT_EQ(take->ignored, Names{"old_head.weight"});
}

TEST_F(DenseStartTest, TakesOnlyWhatIsNamed) {
  config_.add_only("*.weight");
  values_[1].cols = 7;  // it is not taken, so its shape does not matter
  const auto take = Plan();
  ASSERT_TRUE(take.ok()) << take.status();
  EXPECT_EQ(take->arrays.size(), 1u);
  EXPECT_TRUE(take->arrays.contains("deep.weight"));
  EXPECT_FALSE(take->has_state);
  EXPECT_TRUE(take->fresh.empty());
}

TEST_F(DenseStartTest, ANetworkThatTakesNothingBeginsAsOneOfItsOwn) {
  config_.add_only("some_table");
  EXPECT_TRUE(Plan()->arrays.empty());
  EXPECT_EQ(Plan()->start.warmup_steps, 0);
}

TEST_F(DenseStartTest, AnotherShapeIsAnErrorThatNamesBoth) {
  values_[0].rows = 4;
  EXPECT_EQ(Plan().status().message(),
            "\"deep.weight\" is 3 x 2 in the model but 4 x 2 in this job: leave it out of "
            "warm_start.only, or rename it in this job");
  EXPECT_EQ(Plan().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(DenseStartArrayTest, KeepsEveryDigitOfBothNumbers) {
  for (const DenseStart& start :
       {DenseStart{1, 0}, DenseStart{0, 100}, DenseStart{(int64_t{1} << 40) + 12345, 1 << 25}}) {
    const auto array = EncodeStart(start);
    ASSERT_TRUE(array.has_value());
    std::vector<NamedArray> arrays = {Array("b", 1, 2), *array, Array("c", 1, 2)};
    const auto decoded = TakeStart(&arrays);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_EQ(arrays.size(), 2u);
    EXPECT_EQ(arrays[1].name, "c");
    EXPECT_EQ(decoded->steps_before, start.steps_before);
    EXPECT_EQ(decoded->warmup_steps, start.warmup_steps);
  }
  EXPECT_FALSE(EncodeStart(DenseStart()).has_value());
}

TEST(DenseStartArrayTest, OtherNumbersAreDataLoss) {
  const auto take = [](int64_t cols, float value) {
    std::vector<NamedArray> arrays = {Array(kDenseStartName, 1, cols)};
    arrays[0].values[2] = value;
    return TakeStart(&arrays).status().code();
  };
  EXPECT_EQ(take(4, 2), absl::StatusCode::kOk);
  EXPECT_EQ(take(3, 2), absl::StatusCode::kDataLoss);
  EXPECT_EQ(take(4, .5f), absl::StatusCode::kDataLoss);
  EXPECT_EQ(take(4, -1), absl::StatusCode::kDataLoss);
  EXPECT_EQ(take(4, 0x1p24f), absl::StatusCode::kDataLoss) << "a low part that is too large";
}

}  // namespace
}  // namespace satrap
