#include "nn_worker/graph/model/sample_pairs.h"

#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

using Uints = std::vector<uint32_t>;
using Floats = std::vector<float>;

Uints PairsOf(const Floats& labels, const Floats& mask = {},
              const std::vector<uint64_t>& groups = {}) {
  SamplePairs pairs;
  pairs.samples = {7, 7};  // of an earlier part
  MakePairs({labels, {}, mask, groups}, &pairs);
  EXPECT_EQ(pairs.weights, Floats(pairs.samples.size() / 2, 1));
  return pairs.samples;
}

TEST(SamplePairsTest, TheFewerOnesComeRound) {
  EXPECT_EQ(PairsOf({1, 0, 0, 1, 0}), (Uints{0, 1, 3, 2, 0, 4}));
  EXPECT_EQ(PairsOf({1, 1, 1, 0}), (Uints{0, 3, 1, 3, 2, 3}));
}

TEST(SamplePairsTest, BothAreOfOneGroup) {
  EXPECT_EQ(PairsOf({1, 0, 0, 1, 0}, {}, {9, 5, 9, 5, 8}), (Uints{3, 1, 0, 2}));
}

TEST(SamplePairsTest, WithoutBothThereIsNone) {
  EXPECT_EQ(PairsOf({}), Uints());
  EXPECT_EQ(PairsOf({1, 1}), Uints());
  EXPECT_EQ(PairsOf({1, 0}, {}, {1, 2}), Uints());
}

TEST(SamplePairsTest, AMaskedSampleIsInNone) {
  EXPECT_EQ(PairsOf({1, 0, 0, 1}, {1, 0, 1, 1}), (Uints{0, 2, 3, 2}));
}

TEST(SamplePairsTest, APairWeighsTheProductOfItsSamples) {
  SamplePairs pairs;
  const Floats labels = {1, 0, 0}, weights = {2, 3, .5};
  MakePairs({labels, weights, {}, {}}, &pairs);
  EXPECT_EQ(pairs.weights, (Floats{6, 1}));
}

}  // namespace
}  // namespace satrap
