#include "nn_worker/graph/saved/dense_checkpoint.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(DenseCheckpointTest, TheExampleOfTheHeader) {
  const std::string bytes = EncodeArrays({{"b", 1, 2, {1, -2}}});
  const std::string want(
      "SATDENSE\x01\0\0\0\x01\0\0\0\x01\0b\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0"
      "\xc0",
      43);
  EXPECT_EQ(bytes.substr(0, 43), want);
  EXPECT_EQ(bytes.size(), 51u);
}

TEST(DenseCheckpointTest, ReadsWhatItWrote) {
  const auto arrays = DecodeArrays(EncodeArrays({{"a", 2, 2, {1, 2, 3, 4}}, {"empty", 0, 5, {}}}));
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ((*arrays)[0].values, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ((*arrays)[1].name, "empty");
  EXPECT_EQ((*arrays)[1].cols, 5);
}

TEST(DenseCheckpointTest, AnyChangedOrMissingByteIsFound) {
  const std::string bytes = EncodeArrays({{"a", 2, 2, {1, 2, 3, 4}}});
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 0x10;
    EXPECT_EQ(DecodeArrays(damaged).status().code(), absl::StatusCode::kDataLoss) << i;
    EXPECT_EQ(DecodeArrays(bytes.substr(0, i)).status().code(), absl::StatusCode::kDataLoss) << i;
  }
  EXPECT_EQ(DecodeArrays(bytes + "x").status().code(), absl::StatusCode::kDataLoss);
}

TEST(DenseCheckpointTest, NamesOfStateTellTheKindOfTheOptimizer) {
  EXPECT_EQ(OptimizerKindOf({{"a.weight", 0, 0, {}}, {"a.weight#average", 0, 0, {}}}), "");
  EXPECT_EQ(
      OptimizerKindOf(
          {{"a.weight", 0, 0, {}}, {"a.weight#average", 0, 0, {}}, {"a.weight#adam.m", 0, 0, {}}}),
      "adam");
}

}  // namespace
}  // namespace satrap
