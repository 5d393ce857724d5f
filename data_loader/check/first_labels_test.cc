#include "data_loader/check/first_labels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace satrap {
namespace {

std::vector<LabelTargets> Bce(const std::vector<std::string>& columns) {
  std::vector<LabelTargets> all;
  for (const std::string& column : columns) {
    LabelTargets targets;
    targets.column = column;
    targets.loss = TaskConfig::BCE;
    targets.least = 0;
    targets.largest = 1;
    all.push_back(targets);
  }
  return all;
}

TEST(FirstLabelsTest, WithoutRecordsThereIsNothingToJudge) {
  EXPECT_TRUE(FirstLabels(Bce({"y"})).Check().ok());
}

TEST(FirstLabelsTest, UnknownLabelsCountNeitherAsGoodNorAsRefused) {
  FirstLabels first(Bce({"y"}));
  const float nan = std::nanf("");
  for (int i = 0; i < 500; ++i) first.Add(&nan);
  const float refused = -1;
  first.Add(&refused);
  EXPECT_TRUE(first.Check().ok()) << "one is no rule";
  first.Add(&refused);
  EXPECT_EQ(first.Check().message().substr(0, 32), "label y: 2 of the first 2 labels");
}

TEST(FirstLabelsTest, WhileMoreMayComeOnlyWhatCannotBecomeRightIsRefused) {
  FirstLabels first(Bce({"y"}));
  const float good = 1, bad = -1;
  for (int i = 0; i < 10; ++i) {
    first.Add(&bad);
    EXPECT_TRUE(first.CheckSoFar().ok()) << "990 good ones may follow";
  }
  first.Add(&good);
  first.Add(&bad);
  EXPECT_EQ(first.CheckSoFar().message().substr(0, 34), "label y: 11 of the first 12 labels");
}

TEST(FirstLabelsTest, EachColumnIsJudgedAlone) {
  FirstLabels first(Bce({"click", "buy"}));
  const float labels[] = {1, 5};
  first.Add(labels);
  first.Add(labels);
  EXPECT_EQ(first.Check().message().substr(0, 10), "label buy:");
}

TEST(FirstLabelsTest, LooksAtAThousandRecords) {
  FirstLabels first(Bce({"y"}));
  const float good = 1, refused = 7;
  for (uint64_t i = 0; i < FirstLabels::kRecords; ++i) {
    EXPECT_FALSE(first.full());
    first.Add(&good);
  }
  EXPECT_TRUE(first.full());
  for (int i = 0; i < 2000; ++i) first.Add(&refused);
  EXPECT_TRUE(first.Check().ok());
}

}  // namespace
}  // namespace satrap
