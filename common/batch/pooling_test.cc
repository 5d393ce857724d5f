#include "common/batch/pooling.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/numeric/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Three rows. Each has one segment of two values.
const std::vector<float> kRows = {1, 2, 10, 20, 100, 200};
constexpr RowColumns kWhole = {2, 0, 2};

std::vector<float> Pooled(FeatureConfig::Pooling pooling, const RowIndices& indices) {
  std::vector<float> out(indices.samples * 2, -7);
  PoolForward(pooling, indices, kRows.data(), kWhole, out.data(), 2);
  return out;
}

TEST(PoolForward, OneIdASampleIsItsRow) {
  const std::vector<uint32_t> rows = {2, 0, 2};
  for (auto pooling : {FeatureConfig::SUM, FeatureConfig::MEAN, FeatureConfig::SQRT_N}) {
    EXPECT_THAT(Pooled(pooling, {3, rows, {}, {}}), ElementsAre(100, 200, 1, 2, 100, 200));
  }
}

TEST(PoolForward, ManyIdsAndNone) {
  const std::vector<uint32_t> rows = {0, 1, 1, 1, 2};
  const std::vector<uint32_t> offsets = {0, 4, 4, 5};
  const RowIndices indices = {3, rows, offsets, {}};
  EXPECT_THAT(Pooled(FeatureConfig::SUM, indices), ElementsAre(31, 62, 0, 0, 100, 200));
  EXPECT_THAT(Pooled(FeatureConfig::MEAN, indices), ElementsAre(7.75, 15.5, 0, 0, 100, 200));
  EXPECT_THAT(Pooled(FeatureConfig::SQRT_N, indices), ElementsAre(15.5, 31, 0, 0, 100, 200));
}

TEST(PoolForward, ValueWeightsScaleRowsAndDivisors) {
  const std::vector<uint32_t> rows = {0, 1};
  const std::vector<uint32_t> offsets = {0, 2};
  const std::vector<float> weights = {3, 4};
  const RowIndices indices = {1, rows, offsets, weights};
  EXPECT_THAT(Pooled(FeatureConfig::SUM, indices), ElementsAre(43, 86));
  EXPECT_THAT(
      Pooled(FeatureConfig::MEAN, indices),
      ElementsAre(testing::FloatNear(43 / 7.f, 1e-5f), testing::FloatNear(86 / 7.f, 1e-5f)));
  EXPECT_THAT(Pooled(FeatureConfig::SQRT_N, indices),
              ElementsAre(testing::FloatNear(8.6f, 1e-5f), testing::FloatNear(17.2f, 1e-5f)));
}

TEST(PoolForward, ADivisorOfZeroGivesZeros) {
  const std::vector<uint32_t> rows = {0, 1};
  const std::vector<uint32_t> offsets = {0, 2};
  const std::vector<float> weights = {1, -1};
  EXPECT_THAT(Pooled(FeatureConfig::MEAN, {1, rows, offsets, weights}), ElementsAre(0, 0));
}

TEST(PoolForward, WritesOneSegmentIntoAWiderMatrix) {
  const std::vector<uint32_t> rows = {1, 2};
  std::vector<float> out(6, -7);
  PoolForward(FeatureConfig::SUM, {2, rows, {}, {}}, kRows.data(), {2, 1, 1}, out.data() + 1, 3);
  EXPECT_THAT(out, ElementsAre(-7, 20, -7, -7, 200, -7));
}

TEST(SequenceForward, PadsWithZerosAndKeepsTheFirstIds) {
  const std::vector<uint32_t> rows = {0, 1, 2, 2};
  const std::vector<uint32_t> offsets = {0, 3, 3, 4};
  std::vector<float> out(3 * 2 * 2, -7);
  std::vector<uint32_t> lengths(3);
  SequenceForward({3, rows, offsets, {}}, 2, kRows.data(), kWhole, out.data(), 2,
                  absl::MakeSpan(lengths));
  EXPECT_THAT(out, ElementsAre(1, 2, 10, 20, 0, 0, 0, 0, 100, 200, 0, 0));
  EXPECT_THAT(lengths, ElementsAre(2, 0, 1));
}

TEST(SequenceBackward, IgnoresPaddingAndIdsThatWereCut) {
  const std::vector<uint32_t> rows = {0, 1, 2, 2};
  const std::vector<uint32_t> offsets = {0, 3, 3, 4};
  const std::vector<float> gradients(3 * 2 * 2, 1);
  std::vector<float> row_gradients(6);
  SequenceBackward({3, rows, offsets, {}}, 2, gradients.data(), 2, kWhole, row_gradients.data());
  EXPECT_THAT(row_gradients, ElementsAre(1, 1, 1, 1, 1, 1));
}

// Random ids of `samples` samples over `num_rows` rows.
struct RandomIds {
  std::vector<uint32_t> rows, offsets;
  std::vector<float> weights;
  RowIndices indices;

  RandomIds(size_t samples, size_t num_rows, bool jagged, bool weighted, uint64_t seed) {
    SplitMix64 random(seed);
    offsets.push_back(0);
    for (size_t s = 0; s < samples; ++s) {
      const size_t count = jagged ? random.Below(5) : 1;
      for (size_t i = 0; i < count; ++i) {
        rows.push_back(static_cast<uint32_t>(random.Below(num_rows)));
        weights.push_back(static_cast<float>(random.NextDouble() + .1));
      }
      offsets.push_back(static_cast<uint32_t>(rows.size()));
    }
    indices = {samples, rows, {}, {}};
    if (jagged) indices.offsets = offsets;
    if (weighted) indices.weights = weights;
  }
};

// Pooling is linear in the rows, so a central difference of any width, here 1, gives the exact
// gradient of sum(out * g).
TEST(PoolBackward, IsTheFiniteDifferenceOfForward) {
  constexpr size_t kSamples = 6, kNumRows = 4, kWidth = 17, kRowValues = 19, kStride = 20;
  constexpr RowColumns columns = {kRowValues, 1, kWidth};
  for (auto pooling : {FeatureConfig::SUM, FeatureConfig::MEAN, FeatureConfig::SQRT_N}) {
    for (int variant = 0; variant < 4; ++variant) {
      SCOPED_TRACE(std::to_string(pooling) + " " + std::to_string(variant));
      const RandomIds ids(kSamples, kNumRows, variant & 1, variant & 2, 5 + variant);
      SplitMix64 random(9);
      std::vector<float> rows(kNumRows * kRowValues), gradients(kSamples * kStride);
      for (float& value : rows) value = static_cast<float>(random.NextDouble() - .5);
      for (float& value : gradients) value = static_cast<float>(random.NextDouble() - .5);
      const auto loss = [&] {
        std::vector<float> out(kSamples * kStride, 0);
        PoolForward(pooling, ids.indices, rows.data(), columns, out.data(), kStride);
        double sum = 0;
        for (size_t s = 0; s < kSamples; ++s) {
          for (size_t c = 0; c < kWidth; ++c)
            sum += double{out[s * kStride + c]} * gradients[s * kStride + c];
        }
        return sum;
      };
      std::vector<float> row_gradients(rows.size(), 0);
      PoolBackward(pooling, ids.indices, gradients.data(), kStride, columns, row_gradients.data());
      for (size_t i = 0; i < rows.size(); ++i) {
        const float value = rows[i];
        rows[i] = value + .5f;
        const double up = loss();
        rows[i] = value - .5f;
        const double down = loss();
        rows[i] = value;
        EXPECT_NEAR(row_gradients[i], up - down, 1e-5) << i;
      }
    }
  }
}

TEST(PoolBackward, AddsToWhatIsThere) {
  const std::vector<uint32_t> rows = {1, 1};
  const std::vector<float> gradients = {1, 2, 3, 4};
  std::vector<float> row_gradients = {5, 5, 5, 5};
  PoolBackward(FeatureConfig::SUM, {2, rows, {}, {}}, gradients.data(), 2, kWhole,
               row_gradients.data());
  EXPECT_THAT(row_gradients, ElementsAre(5, 5, 9, 11));
}

TEST(CheckRowIndices, NamesTheFieldOfWhatIsWrong) {
  const std::vector<uint32_t> rows = {0, 3};
  const std::vector<uint32_t> good = {0, 1, 2}, falls = {0, 3, 2}, late = {1, 1, 2},
                              shorter = {0, 1, 1};
  const std::vector<float> one_weight = {1};
  EXPECT_TRUE(CheckRowIndices({2, rows, good, {}}, 4, "f").ok());
  EXPECT_TRUE(CheckRowIndices({2, rows, {}, {}}, 4, "f").ok());
  for (const RowIndices& wrong :
       {RowIndices{2, rows, falls, {}}, RowIndices{2, rows, late, {}},
        RowIndices{2, rows, shorter, {}}, RowIndices{3, rows, good, {}},
        RowIndices{3, rows, {}, {}}, RowIndices{2, rows, good, one_weight}}) {
    const absl::Status status = CheckRowIndices(wrong, 4, "features[3]");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("features[3]"));
  }
  EXPECT_FALSE(CheckRowIndices({2, rows, good, {}}, 3, "f").ok());
}

}  // namespace
}  // namespace satrap
