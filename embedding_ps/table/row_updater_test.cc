#include "embedding_ps/table/row_updater.h"

#include <cmath>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// A table with two SGD segments of dims 2 and 1 and learning rates 1 and 0.5. Values begin at 1.
TableConfig TwoSegments() {
  TableConfig config;
  for (const auto& [dim, rate] : {std::pair(2, 1.0f), std::pair(1, 0.5f)}) {
    SegmentConfig* segment = config.add_segments();
    segment->set_dim(dim);
    segment->mutable_initializer()->mutable_constant()->set_value(1);
    segment->mutable_optimizer()->mutable_sgd();
    segment->mutable_optimizer()->set_learning_rate(rate);
  }
  return config;
}

// The values of a new row after one step with `gradient`.
std::vector<float> Stepped(const TableConfig& config, const StepContext& context,
                           const std::vector<float>& gradient) {
  const auto updater = RowUpdater::Create(config, 1);
  CHECK(updater.ok()) << updater.status().ToString();
  std::vector<float> row(updater->layout().num_floats());
  updater->InitRow(7, row.data());
  RowUpdater::Step(*updater, context, context.step).VisitRow(7, gradient.data(), 1, row.data());
  return row;
}

TEST(RowUpdaterTest, StepsEachSegmentAtItsLearningRate) {
  EXPECT_EQ(Stepped(TwoSegments(), StepContext(), {1, 2, 4}), (std::vector<float>{0, -1, -1}));
}

TEST(RowUpdaterTest, GradientsAreDividedByTheNormalizerOfTheStep) {
  StepContext context;
  context.normalizer = 4;
  EXPECT_EQ(Stepped(TwoSegments(), context, {4, 8, 8}), (std::vector<float>{0, -1, 0}));
}

TEST(RowUpdaterTest, GradientsAreTakenAsTheyAreWithoutNormalisation) {
  TableConfig config = TwoSegments();
  config.set_normalisation(NONE);
  StepContext context;
  context.normalizer = 4;
  EXPECT_EQ(Stepped(config, context, {1, 2, 4}), (std::vector<float>{0, -1, -1}));
}

TEST(RowUpdaterTest, LearningRateFactorOfThePushScalesTheStep) {
  StepContext context;
  context.learning_rate_factor = 0.5f;
  EXPECT_EQ(Stepped(TwoSegments(), context, {1, 2, 4}), (std::vector<float>{0.5f, 0, 0}));
}

TEST(RowUpdaterTest, L2IsOfASegment) {
  TableConfig config = TwoSegments();
  config.mutable_segments(0)->set_l2(0.5f);
  config.mutable_segments(0)->set_l2_mode(SegmentConfig::TOUCHED);
  StepContext context;
  context.normalizer = 2;
  EXPECT_EQ(Stepped(config, context, {0, 2, 0}), (std::vector<float>{0.5f, -0.5f, 1, 1}))
      << "the last float is the number of the step";
  config.mutable_segments(1)->set_l2(1);
  // One sample of a batch of two holds the row.
  EXPECT_EQ(Stepped(config, context, {0, 2, 0}), (std::vector<float>{0.5f, -0.5f, 0.75f, 1}));
}

TEST(RowUpdaterTest, ClipIsOfASegment) {
  TableConfig config = TwoSegments();
  config.mutable_segments(0)->set_gradient_clip_norm(2.5f);
  // The norm is 5, so the gradient is halved.
  EXPECT_EQ(Stepped(config, StepContext(), {3, 4, 100}), (std::vector<float>{-0.5f, -1, -49}));
  // The norm is below 2.5, so the gradient is not clipped.
  EXPECT_EQ(Stepped(config, StepContext(), {0.5f, 0, 0}), (std::vector<float>{0.5f, 1, 1}));
}

TEST(RowUpdaterTest, CowClipIsOfASegment) {
  TableConfig config = TwoSegments();
  for (SegmentConfig& segment : *config.mutable_segments()) {
    segment.mutable_initializer()->mutable_constant()->set_value(0);
  }
  config.mutable_segments(0)->mutable_cow_clip()->set_floor(2.5f);
  EXPECT_EQ(Stepped(config, StepContext(), {3, 4, 100}), (std::vector<float>{-1.5f, -2, -50}));
}

TEST(RowUpdaterTest, WeightBoundHoldsAfterTheStep) {
  TableConfig config = TwoSegments();
  config.mutable_segments(0)->set_weight_bound(2);
  EXPECT_EQ(Stepped(config, StepContext(), {9, -9, 9}), (std::vector<float>{-2, 2, -3.5f}));
}

TEST(RowUpdaterTest, WeightBoundDoesNotHideNan) {
  TableConfig config = TwoSegments();
  config.mutable_segments(0)->set_weight_bound(2);
  EXPECT_TRUE(std::isnan(Stepped(config, StepContext(), {NAN, 0, 0})[0]));
}

TEST(RowUpdaterTest, SaysWhatAnUpdateMustTell) {
  TableConfig config = TwoSegments();
  const auto needs = [&] {
    const auto updater = RowUpdater::Create(config, 1);
    return std::pair(updater->needs_sample_counts(), updater->needs_part_share());
  };
  EXPECT_EQ(needs(), std::pair(false, false));
  config.mutable_segments(1)->set_l2(0.5f);
  EXPECT_EQ(needs(), std::pair(true, false));
  config = TwoSegments();
  config.mutable_segments(0)->set_gradient_clip_norm(1);
  EXPECT_EQ(needs(), std::pair(false, true));
}

TEST(RowUpdaterTest, WarmupGrowsLinearlyToTheBaseRate) {
  TableConfig config = TwoSegments();
  config.mutable_learning_rate_schedule()->set_warmup_steps(4);
  for (const auto& [step, factor] :
       {std::pair(0, 0.25f), std::pair(1, 0.5f), std::pair(3, 1.0f), std::pair(100, 1.0f)}) {
    StepContext context;
    context.step = step;
    EXPECT_EQ(Stepped(config, context, {1, 0, 0})[0], 1 - factor) << "step " << step;
  }
}

TEST(RowUpdaterTest, TheScheduleIsThatOfTheTable) {
  TableConfig config = TwoSegments();
  LearningRateSchedule* schedule = config.mutable_learning_rate_schedule();
  schedule->mutable_step()->set_every_steps(10);
  schedule->mutable_step()->set_factor(0.5);
  StepContext context;
  context.step = 10;
  EXPECT_EQ(Stepped(config, context, {1, 0, 1}), (std::vector<float>{0.5f, 1, 0.75f}));
}

// Neighbouring segments with the same optimizer and rule may be stepped by one call. The result
// must be the same as with a call for each.
TEST(RowUpdaterTest, ASegmentIsSteppedAsIfItWereAlone) {
  const auto segment = [](int dim, float rate, bool adam, float l2 = 0, float clip = 0) {
    SegmentConfig config;
    config.set_dim(dim);
    config.set_l2(l2);
    config.set_gradient_clip_norm(clip);
    config.mutable_initializer()->mutable_constant()->set_value(1);
    config.mutable_optimizer()->set_learning_rate(rate);
    if (adam) {
      config.mutable_optimizer()->mutable_adam();
    } else {
      config.mutable_optimizer()->mutable_adagrad();
    }
    return config;
  };
  TableConfig together;
  for (const SegmentConfig& config :
       {segment(1, 0.1f, false), segment(16, 0.1f, false), segment(3, 0.1f, false),
        segment(2, 0.2f, false), segment(4, 0.1f, true), segment(5, 0.1f, true),
        segment(2, 0.1f, false, 0.5f), segment(3, 0.1f, false, 0.5f),
        segment(2, 0.1f, false, 0, 0.125f), segment(3, 0.1f, false, 0, 0.125f)}) {
    *together.add_segments() = config;
  }
  const auto updater = RowUpdater::Create(together, 1);
  ASSERT_TRUE(updater.ok());
  std::vector<float> gradient;
  for (int i = 0; i < updater->layout().num_values(); ++i)
    gradient.push_back(0.3f * static_cast<float>(i % 5) - 0.7f);
  StepContext context;
  context.normalizer = 3;
  const std::vector<float> row = Stepped(together, context, gradient);
  for (int i = 0; i < together.segments_size(); ++i) {
    TableConfig alone;
    *alone.add_segments() = together.segments(i);
    const RowLayout::Segment& at = updater->layout().segments()[i];
    const auto begin = gradient.begin() + at.value_offset;
    const std::vector<float> expected = Stepped(alone, context, {begin, begin + at.dim});
    std::vector<float> got(row.begin() + at.value_offset, row.begin() + at.value_offset + at.dim);
    got.insert(got.end(), row.begin() + at.state_offset,
               row.begin() + at.state_offset + at.state_size);
    EXPECT_EQ(got, expected) << "segment " << i;
  }
}

TEST(RowUpdaterTest, StateBeginsAsTheOptimizerSays) {
  TableConfig config = TwoSegments();
  config.mutable_segments(1)->mutable_optimizer()->mutable_adagrad()->set_initial_accumulator(3);
  const auto updater = RowUpdater::Create(config, 1);
  ASSERT_TRUE(updater.ok());
  std::vector<float> row(updater->layout().num_floats());
  updater->InitRow(7, row.data());
  EXPECT_EQ(row, (std::vector<float>{1, 1, 1, 3}));
}

TEST(RowUpdaterTest, NamesTheFieldThatIsWrong) {
  TableConfig config = TwoSegments();
  config.mutable_segments(1)->mutable_optimizer()->set_learning_rate(-1);
  EXPECT_EQ(RowUpdater::Create(config, 1).status().message(),
            "segments[1].optimizer.learning_rate: must be finite and positive, got -1");
  config = TwoSegments();
  config.mutable_segments(0)->set_l2(-1);
  EXPECT_EQ(RowUpdater::Create(config, 1).status().message(),
            "segments[0].l2: must be finite and not negative, got -1");
  config = TwoSegments();
  config.mutable_segments(0)->set_dim(0);
  EXPECT_FALSE(RowUpdater::Create(config, 1).ok());
  EXPECT_FALSE(RowUpdater::Create(TableConfig(), 1).ok());
}

}  // namespace
}  // namespace satrap
