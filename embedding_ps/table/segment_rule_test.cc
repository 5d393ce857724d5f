#include "embedding_ps/table/segment_rule.h"

#include <cmath>
#include <vector>

#include "embedding_ps/optimizer/row_step.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr double kExact = 1e-7;

StepContext Context(uint32_t count, int64_t step = 0) {
  StepContext context;
  context.sample_count = count;
  context.step = step;
  return context;
}

std::vector<float> Prepared(const SegmentConfig& config, const StepContext& context,
                            const std::vector<float>& gradient, const std::vector<float>& values,
                            float inverse_normalizer = 1, float* l2_step = nullptr) {
  std::vector<float> prepared(values.size());
  SegmentRule(config).Prepare(context, inverse_normalizer, gradient.data(), values.data(), l2_step,
                              prepared.data(), values.size());
  return prepared;
}

void ExpectNear(const std::vector<float>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], kExact * std::abs(wanted[i])) << i;
  }
}

SegmentConfig CowClip(double floor, CowClipConfig::Form form = CowClipConfig::PAPER) {
  SegmentConfig config;
  config.mutable_cow_clip()->set_floor(static_cast<float>(floor));
  config.mutable_cow_clip()->set_form(form);
  return config;
}

// |w| = .05, so the gradient of two samples may have a norm of .1; |g| = .5.
TEST(CowClipTest, ClipsToTheNormOfTheRowTimesTheCount) {
  ExpectNear(Prepared(CowClip(1e-5), Context(2), {.3f, .4f}, {.03f, .04f}), {.06, .08});
}

TEST(CowClipTest, ARowOfZerosIsClippedToTheFloorTimesTheCount) {
  const std::vector<float> g = Prepared(CowClip(1e-5), Context(3), {.3f, .4f}, {0, 0});
  EXPECT_NEAR(std::hypot(g[0], g[1]), 3e-5, 1e-11);
}

TEST(CowClipTest, RatioScalesTheNormOfTheRowButNotTheFloorOfThePaper) {
  SegmentConfig config = CowClip(1e-5);
  config.mutable_cow_clip()->set_ratio(.5f);
  ExpectNear(Prepared(config, Context(2), {.3f, .4f}, {.03f, .04f}), {.03, .04});
  const std::vector<float> g = Prepared(config, Context(3), {.3f, .4f}, {0, 0});
  EXPECT_NEAR(std::hypot(g[0], g[1]), 3e-5, 1e-11);
}

TEST(CowClipTest, AHugeFloorIsNoClipping) {
  const std::vector<float> gradient = {.3f, -.4f, 7e5f};
  for (const auto form : {CowClipConfig::PAPER, CowClipConfig::RELEASED}) {
    EXPECT_EQ(Prepared(CowClip(1e30, form), Context(1), gradient, {.1f, 0, 2}), gradient);
  }
}

TEST(CowClipTest, AGradientUnderTheLimitKeepsItsBits) {
  const std::vector<float> gradient = {.03f, .04f};
  EXPECT_EQ(Prepared(CowClip(1e-5), Context(2), gradient, {.03f, .04f}), gradient);
}

// In the released code the least limit is ratio^2 count sqrt(dim) floor.
TEST(CowClipTest, TheReleasedFloorGrowsWithTheDimAndTheRatio) {
  SegmentConfig config = CowClip(1e-5, CowClipConfig::RELEASED);
  const auto norm = [&] {
    const std::vector<float> g = Prepared(config, Context(3), {3, 4, 0, 0}, {0, 0, 0, 0});
    return std::hypot(g[0], g[1]);
  };
  EXPECT_NEAR(norm(), 6e-5, 1e-11);
  config.mutable_cow_clip()->set_ratio(.5f);
  EXPECT_NEAR(norm(), 1.5e-5, 1e-11);
}

TEST(CowClipTest, ThePaperAddsL2ToTheClippedGradientAndTheReleasedCodeClipsTheSum) {
  for (const auto form : {CowClipConfig::PAPER, CowClipConfig::RELEASED}) {
    SegmentConfig config = CowClip(1e-5, form);
    config.set_l2(10);
    // One sample in a batch of 1. The limit is .05, and L2 alone would give (.3, .4).
    const std::vector<float> g = Prepared(config, Context(1), {.3f, .4f}, {.03f, .04f});
    if (form == CowClipConfig::PAPER) {
      ExpectNear(g, {.33, .44});
    } else {
      ExpectNear(g, {.03, .04});
    }
  }
}

TEST(SegmentRuleTest, OccurrenceL2GrowsWithTheShareOfSamplesThatHoldTheKey) {
  SegmentConfig config;
  config.set_l2(.5f);
  EXPECT_EQ(Prepared(config, Context(2), {4, 8}, {1, -2}, .125f),
            (std::vector<float>{.5f + .125f, 1 - .25f}));
}

TEST(SegmentRuleTest, OccurrenceL2OfPartsAddsUpToThatOfTheirSum) {
  SegmentConfig config;
  config.set_l2(.5f);
  const auto g = [&](uint32_t count) {
    return Prepared(config, Context(count), {0}, {3}, .0625f)[0];
  };
  EXPECT_EQ(g(2) + g(5), g(7));
}

TEST(SegmentRuleTest, TouchedL2IsAddedOnceAStep) {
  SegmentConfig config;
  config.set_l2(.5f);
  config.set_l2_mode(SegmentConfig::TOUCHED);
  float l2_step = 0;
  const auto added = [&](int64_t step) {
    return Prepared(config, Context(9, step), {0}, {4}, .125f, &l2_step)[0];
  };
  EXPECT_EQ(added(3), 2) << "the count does not matter";
  EXPECT_EQ(added(3), 0) << "another part of the step";
  EXPECT_EQ(added(5), 2);
  EXPECT_EQ(added(4), 0) << "late";
  EXPECT_EQ(added(6), 2);
}

TEST(SegmentRuleTest, APartHasTheShareOfTheClipNormThatItHasOfTheStep) {
  SegmentConfig config;
  config.set_gradient_clip_norm(2);
  StepContext context = Context(1);
  EXPECT_EQ(Prepared(config, context, {3, 4}, {0, 0}), (std::vector<float>{1.2f, 1.6f}));
  context.part_share = .25;
  EXPECT_EQ(Prepared(config, context, {3, 4}, {0, 0}), (std::vector<float>{.3f, .4f}));
}

TEST(SegmentRuleTest, SaysWhatItNeeds) {
  SegmentConfig config;
  EXPECT_TRUE(SegmentRule(config).OnlyNormalises());
  EXPECT_FALSE(SegmentRule(config).NeedsSampleCount());
  config.set_l2(.5f);
  EXPECT_TRUE(SegmentRule(config).NeedsSampleCount());
  EXPECT_TRUE(SegmentRule(config).IsElementwise());
  config.set_l2_mode(SegmentConfig::TOUCHED);
  EXPECT_FALSE(SegmentRule(config).NeedsSampleCount());
  EXPECT_TRUE(SegmentRule(config).KeepsL2Step());
  EXPECT_FALSE(SegmentRule(config).IsElementwise());
  EXPECT_FALSE(SegmentRule(config).NeedsPartShare());
  config.set_gradient_clip_norm(1);
  EXPECT_TRUE(SegmentRule(config).NeedsPartShare());
  EXPECT_TRUE(SegmentRule(CowClip(1)).NeedsSampleCount());
  EXPECT_FALSE(SegmentRule(CowClip(1)).IsElementwise());
}

}  // namespace
}  // namespace satrap
