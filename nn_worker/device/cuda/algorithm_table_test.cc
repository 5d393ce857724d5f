#include "nn_worker/device/cuda/algorithm_table.h"

#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr AlgorithmPlace kPlace = {130100, 90, 132};
constexpr AlgorithmConfig kFirst = {66, 1, 1}, kSecond = {66, 2, 1}, kThird = {67, 2, 1};

MeasuredAlgorithm Entry(int64_t samples, const AlgorithmConfig& algorithm) {
  return {kPlace,  ProductPrecision::kBf16, ProductEpilogue::kBiasRelu, false, false, false,
          false,   samples,                 432,                        400,   algorithm};
}

// A forward product of a layer with 432 inputs and 400 outputs.
ProductSpec Forward(int64_t samples) {
  ProductSpec spec;
  spec.rows = samples;
  spec.cols = 400;
  spec.terms = 432;
  spec.precision = ProductPrecision::kBf16;
  spec.f32_output = false;
  spec.epilogue = ProductEpilogue::kBiasRelu;
  return spec;
}

TEST(AlgorithmTableTest, TheNearestNumberOfSamplesCounts) {
  const std::vector<MeasuredAlgorithm> table = {Entry(131072, kFirst), Entry(8192, kSecond),
                                                Entry(65536, kThird)};
  const auto found = [&](int64_t samples) {
    return FindAlgorithm(table, kPlace, Forward(samples))->algorithm;
  };
  EXPECT_EQ(found(131072), kFirst);
  EXPECT_EQ(found(1000000), kFirst);
  EXPECT_EQ(found(65536), kThird);
  EXPECT_EQ(found(60000), kThird);
  EXPECT_EQ(found(8192), kSecond);
  EXPECT_EQ(found(1), kSecond);
  EXPECT_EQ(found(20000), kSecond) << "a factor of 2.4, against 3.3";
}

TEST(AlgorithmTableTest, OfTwoThatAreAsNearTheSmallerCounts) {
  const MeasuredAlgorithm large = Entry(400, kFirst), small = Entry(100, kSecond);
  for (const std::vector<MeasuredAlgorithm>& table : {std::vector{large, small}, {small, large}}) {
    EXPECT_EQ(FindAlgorithm(table, kPlace, Forward(200))->algorithm, kSecond);
  }
}

TEST(AlgorithmTableTest, EverythingButTheSamplesMustBeTheSame) {
  const std::vector<MeasuredAlgorithm> table = {Entry(100, kFirst)};
  const ProductSpec spec = Forward(100);
  EXPECT_NE(FindAlgorithm(table, kPlace, spec), nullptr);
  EXPECT_EQ(FindAlgorithm({}, kPlace, spec), nullptr);
  EXPECT_EQ(FindAlgorithm(table, {130101, 90, 132}, spec), nullptr);
  EXPECT_EQ(FindAlgorithm(table, {130100, 80, 132}, spec), nullptr);
  EXPECT_EQ(FindAlgorithm(table, {130100, 90, 114}, spec), nullptr);
  std::vector<ProductSpec> others(8, spec);
  others[0].cols = 408;
  others[1].terms = 400;
  others[2].precision = ProductPrecision::kF16;
  others[3].epilogue = ProductEpilogue::kBias;
  others[4].f32_output = true;
  others[5].transpose_b = true;
  others[6].c_alignment = 8;
  others[7].piece = 50;
  for (const ProductSpec& other : others) {
    EXPECT_EQ(FindAlgorithm(table, kPlace, other), nullptr) << &other - others.data();
  }
}

TEST(AlgorithmTableTest, AWeightGradientIsFoundByTheDimensionsOfItsWeights) {
  MeasuredAlgorithm entry = Entry(100, kThird);
  entry.transpose_a = entry.pieces = true;
  ProductSpec spec = Forward(432);
  spec.transpose_a = true;
  spec.terms = 5000;
  spec.piece = 1000;
  EXPECT_NE(FindAlgorithm({entry}, kPlace, spec), nullptr);
}

TEST(AlgorithmTableTest, AnAlgorithmThatIsNotOfferedIsNotTaken) {
  const std::vector<AlgorithmConfig> offered = {kFirst, kSecond};
  const MeasuredAlgorithm second = Entry(1, kSecond), third = Entry(1, kThird);
  EXPECT_EQ(PreferredAlgorithm(offered, nullptr), 0);
  EXPECT_EQ(PreferredAlgorithm(offered, &second), 1);
  EXPECT_EQ(PreferredAlgorithm(offered, &third), 0);
}

TEST(AlgorithmTableTest, AnEntryIsPrintedAsASource) {
  EXPECT_EQ(SourceOf(Entry(8192, kSecond)),
            "    {{130100, 90, 132}, ProductPrecision::kBf16, ProductEpilogue::kBiasRelu,\n"
            "     false, false, false, false, 8192, 432, 400, {66, 2, 1, 0, 0, 0, 0, 0, 0}},\n");
}

}  // namespace
}  // namespace satrap
