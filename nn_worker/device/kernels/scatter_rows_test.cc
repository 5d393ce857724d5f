#include "nn_worker/device/kernels/scatter_rows.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

constexpr uint32_t kRows = 37, kSamples = 64;
constexpr int64_t kRowValues = 20, kGap = 4;

struct Segment {
  int32_t column, width;
};

// A feature with 0 to 4 ids per sample. Most ids refer to row 7, and none to row 5.
struct Feature {
  RowPooling pooling;
  std::vector<Segment> segments;
  bool weighted;
  int32_t max_length = 2;
  std::vector<uint32_t> ids = {}, offsets = {0};
  std::vector<float> weights = {};
  std::vector<std::vector<float>> gradients = {};  // of each segment, without gaps

  int64_t positions() const { return pooling == RowPooling::kNone ? max_length : 1; }
};

std::vector<Feature> Features(const std::vector<Segment>& segments) {
  std::vector<Feature> features = {{RowPooling::kSum, segments, true},
                                   {RowPooling::kMean, segments, false},
                                   {RowPooling::kSqrtN, {segments[0]}, true},
                                   {RowPooling::kNone, segments, true}};
  SplitMix64 random(1);
  for (Feature& feature : features) {
    for (uint32_t s = 0; s < kSamples; ++s) {
      for (uint64_t n = random.Below(5); n > 0; --n) {
        auto row = static_cast<uint32_t>(random.Below(2 * kRows));
        feature.ids.push_back(row >= kRows || row == 5 ? 7 : row);
        if (feature.weighted) feature.weights.push_back(static_cast<float>(random.Below(4)) / 2);
      }
      feature.offsets.push_back(static_cast<uint32_t>(feature.ids.size()));
    }
    for (const Segment& segment : feature.segments) {
      feature.gradients.push_back(
          RandomValues(kSamples * feature.positions() * segment.width, random.Next()));
    }
  }
  return features;
}

// The derivative of the values of sample s with respect to the row of id j.
double Coefficient(const Feature& feature, uint32_t s, uint32_t j) {
  const auto weight = [&](uint32_t id) { return feature.weighted ? feature.weights[id] : 1.0; };
  const uint32_t begin = feature.offsets[s], end = feature.offsets[s + 1];
  if (feature.pooling == RowPooling::kNone) {
    return j - begin < static_cast<uint32_t>(feature.max_length) ? weight(j) : 0;
  }
  double sum = 0, squares = 0;
  for (uint32_t id = begin; id < end; ++id) {
    sum += weight(id);
    squares += weight(id) * weight(id);
  }
  if (feature.pooling == RowPooling::kSum) return weight(j);
  const double divisor = feature.pooling == RowPooling::kMean ? sum : std::sqrt(squares);
  return divisor == 0 ? 0 : weight(j) / divisor;
}

std::vector<double> Expected(const std::vector<Feature>& features) {
  std::vector<double> sums(kRows * kRowValues, 0);
  for (const Feature& feature : features) {
    for (uint32_t s = 0; s < kSamples; ++s) {
      for (uint32_t j = feature.offsets[s]; j < feature.offsets[s + 1]; ++j) {
        const double coefficient = Coefficient(feature, s, j);
        if (coefficient == 0) continue;
        const int64_t p = feature.pooling == RowPooling::kNone ? j - feature.offsets[s] : 0;
        for (size_t i = 0; i < feature.segments.size(); ++i) {
          const auto [column, width] = feature.segments[i];
          for (int32_t c = 0; c < width; ++c) {
            sums[feature.ids[j] * kRowValues + column + c] +=
                coefficient * feature.gradients[i][(s * feature.positions() + p) * width + c];
          }
        }
      }
    }
  }
  return sums;
}

// Runs ScatterRows with gaps between the rows of all matrices. Returns the gradients of all rows.
template <typename In>
std::vector<float> Scatter(TestDevice* device, const std::vector<Feature>& features, bool aligned) {
  std::vector<ScatterFeature> list;
  std::vector<ScatterSegment> segments;
  std::vector<std::vector<uint32_t>> of_row(kRows);
  uint32_t number = 0;
  for (const Feature& feature : features) {
    ScatterFeature entry = {};
    entry.pooling = feature.pooling;
    entry.max_length = feature.max_length;
    entry.offsets = device->Put(feature.offsets);
    entry.weights = feature.weighted ? device->Put(feature.weights) : nullptr;
    entry.first_id = number;
    entry.first_segment = static_cast<int32_t>(segments.size());
    for (size_t i = 0; i < feature.segments.size(); ++i) {
      const int64_t cols = feature.positions() * feature.segments[i].width, stride = cols + kGap;
      std::vector<In> spread(kSamples * stride, FromFloat<In>(NAN));
      for (int64_t k = 0; k < kSamples * cols; ++k) {
        spread[k / cols * stride + k % cols] = FromFloat<In>(feature.gradients[i][k]);
      }
      segments.push_back({feature.segments[i].column, feature.segments[i].width,
                          device->Put(spread), stride, ElementTypeOf<In>(), 0});
    }
    entry.end_segment = static_cast<int32_t>(segments.size());
    list.push_back(entry);
    for (const uint32_t row : feature.ids) of_row[row].push_back(number++);
  }
  std::vector<uint32_t> starts = {0}, ids;
  for (const auto& row : of_row) {
    ids.insert(ids.end(), row.begin(), row.end());
    starts.push_back(static_cast<uint32_t>(ids.size()));
  }
  IdPlace* const places = device->Room<IdPlace>(number);
  const ScatterFeature* const of_device = device->Put(list);
  LocateIds(device->stream(), of_device, static_cast<int>(list.size()), kSamples, places);
  const ScatterArgs args = {device->Put(starts), device->Put(ids),      places,
                            of_device,           device->Put(segments), aligned};
  const int64_t stride = kRowValues + kGap;
  float* const out = device->Room<float>(kRows * stride);
  ScatterRows(device->stream(), args, Matrix<float>{out, kRows, kRowValues, stride});
  std::vector<float> values;
  const auto spread = device->Get(out, kRows * stride);
  for (int64_t i = 0; i < kRows * stride; ++i) {
    if (i % stride < kRowValues) {
      values.push_back(spread[i]);
    } else {
      EXPECT_TRUE(std::isnan(spread[i])) << "between the rows";
    }
  }
  return values;
}

void ExpectSums(const std::vector<Feature>& features, const std::vector<float>& got,
                double tolerance) {
  const std::vector<double> expected = Expected(features);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], tolerance) << i;
}

// The segments leave out columns 16 to 19 of the aligned tables, and columns 1 and 19 of the
// others.
const std::vector<Segment> kAligned = {{0, 4}, {4, 12}}, kRagged = {{0, 1}, {2, 17}};

TEST_P(KernelTest, GradientsAreSummedByRow) {
  for (const bool aligned : {false, true}) {
    const std::vector<Feature> features = Features(aligned ? kAligned : kRagged);
    ExpectSums(features, Scatter<float>(&device_, features, aligned), 1e-4);
    ExpectSums(features, Scatter<Half>(&device_, features, aligned), 0.1);
    ExpectSums(features, Scatter<Bf16>(&device_, features, aligned), 1);
  }
}

TEST_P(KernelTest, RowSumsHaveTheSameBitsInEveryOrderAndWithOrWithoutWideAccesses) {
  const std::vector<Feature> features = Features(kAligned);
  TestDevice forward;
  const auto expected = Scatter<float>(&forward, features, true);
  EXPECT_EQ(Scatter<float>(&device_, features, true), expected);
  EXPECT_EQ(Scatter<float>(&device_, features, false), expected);
}

// There are more rows than the largest grid handles at once, with one id each.
TEST_P(KernelTest, ManyRowsAreAllWritten) {
  constexpr int64_t kMany = 4096 * 32 + 1000;
  std::vector<uint32_t> starts, ids;
  for (uint32_t i = 0; i < kMany; ++i) {
    starts.push_back(i);
    ids.push_back(i);
  }
  starts.push_back(kMany);
  ScatterFeature feature = {};
  feature.end_segment = 1;
  const auto gradient = RandomValues(kMany, 3);
  const ScatterFeature* const features = device_.Put(std::vector<ScatterFeature>{feature});
  IdPlace* const places = device_.Room<IdPlace>(kMany);
  LocateIds(device_.stream(), features, 1, kMany, places);
  const auto* const segments = device_.Put(
      std::vector<ScatterSegment>{{0, 1, device_.Put(gradient), 1, ElementType::kF32, 0}});
  float* const out = device_.Room<float>(kMany);
  ScatterRows(device_.stream(),
              ScatterArgs{device_.Put(starts), device_.Put(ids), places, features, segments, false},
              MatrixOf(out, kMany, 1));
  EXPECT_EQ(device_.Get(out, kMany), gradient);
}

}  // namespace
}  // namespace satrap
