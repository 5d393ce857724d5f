#include "gtest/gtest.h"

#include "nn_worker/collective/local_collective.h"
#include "nn_worker/metrics/testing/scored_pass.h"

namespace satrap {
namespace {

constexpr double kMostBytes = 24;

PassCost Cost(std::unique_ptr<PassMetric> (*make)(), int ranks) {
  ScoredPass pass;
  pass.samples = 500000;
  pass.make_metric = make;
  pass.ranks = NewLocalCollectives(ranks);
  return Run(pass);
}

TEST(PassMemoryTest, AnAucTakesAtMost24BytesASampleWhateverTheNumberOfRanks) {
  const PassCost one = Cost(&NewAucMetric, 1);
  EXPECT_LE(one.bytes_a_sample, kMostBytes);
  EXPECT_GT(one.bytes_a_sample, 8) << "what is measured is what is held";
  for (const int ranks : {2, 4}) {
    const PassCost cost = Cost(&NewAucMetric, ranks);
    EXPECT_LE(cost.bytes_a_sample, kMostBytes) << ranks << " ranks";
    EXPECT_EQ(cost.values.auc(), one.values.auc()) << ranks << " ranks";
  }
}

TEST(PassMemoryTest, AGaucTakesAtMost24BytesASampleWhateverTheNumberOfRanks) {
  const PassCost one = Cost(&NewGroupAucMetric, 1);
  EXPECT_LE(one.bytes_a_sample, kMostBytes);
  EXPECT_GT(one.values.gauc_groups(), 5000u);
  for (const int ranks : {2, 4}) {
    const PassCost cost = Cost(&NewGroupAucMetric, ranks);
    EXPECT_LE(cost.bytes_a_sample, kMostBytes) << ranks << " ranks";
    EXPECT_EQ(cost.values.SerializeAsString(), one.values.SerializeAsString()) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace satrap
