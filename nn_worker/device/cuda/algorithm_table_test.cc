#include "nn_worker/device/cuda/algorithm_table.h"

#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr AlgorithmPlace kPlace = {130100, 90, 132};
constexpr AlgorithmConfig kFirst = {66, 1, 1}, kSecond = {66, 2, 1}, kThird = {67, 2, 1};

MeasuredAlgorithm Entry(int64_t samples, const AlgorithmConfig& algorithm) {
  return {kPlace, ProductPrecision::kBf16, LayerProduct::kForward, samples, 432, 400, algorithm};
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

TEST(AlgorithmTableTest, OtherCardsLibrariesAndProductsHaveNoEntry) {
  const std::vector<MeasuredAlgorithm> table = {Entry(100, kFirst)};
  const ProductSpec spec = Forward(100);
  EXPECT_NE(FindAlgorithm(table, kPlace, spec), nullptr);
  EXPECT_EQ(FindAlgorithm({}, kPlace, spec), nullptr);
  EXPECT_EQ(FindAlgorithm(table, {130101, 90, 132}, spec), nullptr);
  EXPECT_EQ(FindAlgorithm(table, {130100, 80, 132}, spec), nullptr);
  EXPECT_EQ(FindAlgorithm(table, {130100, 90, 114}, spec), nullptr);
  std::vector<ProductSpec> others(5, spec);
  others[0].cols = 408;
  others[1].terms = 400;
  others[2].precision = ProductPrecision::kF16;
  others[3].transpose_b = true;
  others[4].c_alignment = 8;
  for (const ProductSpec& other : others) {
    EXPECT_EQ(FindAlgorithm(table, kPlace, other), nullptr) << &other - others.data();
  }
}

TEST(AlgorithmTableTest, EachProductIsFoundByTheDimensionsOfTheWeights) {
  std::vector<MeasuredAlgorithm> table(3, Entry(100, kFirst));
  table[1].product = LayerProduct::kInputGradient;
  table[1].algorithm = kSecond;
  table[2].product = LayerProduct::kWeightGradient;
  table[2].algorithm = kThird;
  EXPECT_EQ(FindAlgorithm(table, kPlace, Forward(70))->algorithm, kFirst);
  ProductSpec input_gradient = Forward(70);
  input_gradient.transpose_b = true;
  input_gradient.cols = 432;
  input_gradient.terms = 400;
  EXPECT_EQ(FindAlgorithm(table, kPlace, input_gradient)->algorithm, kSecond);
  ProductSpec weight_gradient = Forward(432);
  weight_gradient.transpose_a = true;
  weight_gradient.terms = 70;
  EXPECT_EQ(FindAlgorithm(table, kPlace, weight_gradient)->algorithm, kThird);
}

TEST(AlgorithmTableTest, AnAlgorithmThatIsNotOfferedIsNotTaken) {
  const std::vector<AlgorithmConfig> offered = {kFirst, kSecond};
  const MeasuredAlgorithm second = Entry(1, kSecond), third = Entry(1, kThird);
  EXPECT_EQ(PreferredAlgorithm(offered, nullptr), 0);
  EXPECT_EQ(PreferredAlgorithm(offered, &second), 1);
  EXPECT_EQ(PreferredAlgorithm(offered, &third), 0);
}

TEST(AlgorithmTableTest, ATableIsPrintedAsItsSource) {
  EXPECT_EQ(
      SourceBegin(kPlace, "card 0 (NVIDIA H200)") + SourceOf(Entry(8192, kSecond)) + SourceEnd(),
      "// The output of algorithm_table_cuda (nn_worker/backend/benchmark).\n\n"
      "#include \"nn_worker/device/cuda/algorithm_table.h\"\n\n"
      "namespace satrap {\nnamespace {\n\n"
      "using L = LayerProduct;\nusing P = ProductPrecision;\n\n"
      "// card 0 (NVIDIA H200)\n"
      "constexpr AlgorithmPlace kCard = {130100, 90, 132};\n\n"
      "constexpr MeasuredAlgorithm kMeasured[] = {\n"
      "    {kCard, P::kBf16, L::kForward, 8192, 432, 400, {66, 2, 1, 0, 0, 0, 0, 0, 0}},\n"
      "};\n\n}  // namespace\n\n"
      "absl::Span<const MeasuredAlgorithm> MeasuredAlgorithms() { return kMeasured; }\n\n"
      "}  // namespace satrap\n");
}

}  // namespace
}  // namespace satrap
