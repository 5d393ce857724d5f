#include "data_loader/synthetic/bayes_auc.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

SyntheticFormat Format() {
  SyntheticFormat format;
  for (int i = 0; i < 6; ++i) format.add_vocabulary_sizes(30);
  for (int i = 0; i < 20; ++i) format.add_vocabulary_sizes(4000);
  format.set_test_samples(20000);
  return format;
}

TEST(BayesAucTest, TheDefaultsLeaveRoomForModels) {
  const BayesAuc auc = ComputeBayesAuc(Format());
  EXPECT_GT(auc.of_test_labels, 0.75);
  EXPECT_LT(auc.of_test_labels, 0.85);
  EXPECT_NEAR(auc.of_test_labels, auc.expected, 0.01);
}

TEST(BayesAucTest, IsAHalfWhereNothingIsPlanted) {
  SyntheticFormat format = Format();
  format.set_random_label_rate(0.25);
  EXPECT_EQ(ComputeBayesAuc(format).of_test_labels, 0.5);
  EXPECT_DOUBLE_EQ(ComputeBayesAuc(format).expected, 0.5);
}

TEST(BayesAucTest, StrongerPlantsAreEasierToTell) {
  SyntheticFormat format = Format();
  format.set_interaction_stddev(4);
  EXPECT_GT(ComputeBayesAuc(format).expected, 0.9);
}

}  // namespace
}  // namespace satrap
