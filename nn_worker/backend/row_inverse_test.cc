#include "nn_worker/backend/row_inverse.h"

#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(RowInverseTest, NumbersTheIdsOfAllFeaturesAndListsThemByRow) {
  const std::vector<uint32_t> a = {2, 0, 2}, b = {}, c = {0, 4, 2};
  HostRowInverse inverse;
  InvertIds({a, b, c}, 5, &inverse);
  EXPECT_EQ(inverse.starts, (std::vector<uint32_t>{0, 2, 2, 5, 5, 6}));
  EXPECT_EQ(inverse.positions, (std::vector<uint32_t>{1, 3, 0, 2, 5, 4}));
}

TEST(RowInverseTest, HoldsNothingOfAnEarlierPart) {
  const std::vector<uint32_t> large = {3, 3, 1, 0}, small = {1};
  HostRowInverse inverse;
  InvertIds({large}, 4, &inverse);
  InvertIds({small}, 2, &inverse);
  EXPECT_EQ(inverse.starts, (std::vector<uint32_t>{0, 0, 1}));
  EXPECT_EQ(inverse.positions, (std::vector<uint32_t>{0}));
  InvertIds({}, 0, &inverse);
  EXPECT_EQ(inverse.starts, std::vector<uint32_t>{0});
}

}  // namespace
}  // namespace satrap
