#include "nn_worker/device/kernels/gather_pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

constexpr int64_t kRows = 50, kRowValues = 24, kSamples = 75, kGap = 4;

struct Feature {
  RowPooling pooling;
  int32_t column, width;
  std::vector<uint32_t> rows, offsets;
  std::vector<float> weights;
  int32_t max_length = 1;

  int64_t out_values() const { return max_length * width; }
};

// If `jagged`, the feature has offsets and 0 to 4 ids per sample; otherwise it has no offsets and
// one id per sample.
Feature RandomFeature(RowPooling pooling, int32_t column, int32_t width, bool jagged,
                      bool weighted) {
  Feature feature{pooling, column, width, {}, {}, {}};
  if (pooling == RowPooling::kNone) feature.max_length = 3;
  SplitMix64 random(static_cast<uint64_t>(column) * 100 + width);
  if (jagged) feature.offsets.push_back(0);
  for (int64_t s = 0; s < kSamples; ++s) {
    const uint64_t ids = jagged ? random.Below(5) : 1;
    for (uint64_t j = 0; j < ids; ++j) {
      feature.rows.push_back(static_cast<uint32_t>(random.Below(kRows)));
      if (weighted) feature.weights.push_back(static_cast<float>(random.Below(3)));
    }
    if (jagged) feature.offsets.push_back(static_cast<uint32_t>(feature.rows.size()));
  }
  return feature;
}

// Computes the formulas of common/batch/pooling.h in double.
std::vector<double> Pooled(const Feature& feature, const std::vector<float>& table) {
  std::vector<double> out(kSamples * feature.out_values(), 0);
  for (int64_t s = 0; s < kSamples; ++s) {
    const int64_t begin = feature.offsets.empty() ? s : feature.offsets[s];
    const int64_t end = feature.offsets.empty() ? s + 1 : feature.offsets[s + 1];
    double sum = 0, squares = 0;
    for (int64_t j = begin; j < end; ++j) {
      const double weight = feature.weights.empty() ? 1 : feature.weights[j];
      sum += weight;
      squares += weight * weight;
      const int64_t p = feature.pooling == RowPooling::kNone ? j - begin : 0;
      if (p >= feature.max_length) continue;
      for (int32_t c = 0; c < feature.width; ++c) {
        out[s * feature.out_values() + p * feature.width + c] +=
            weight * table[feature.rows[j] * kRowValues + feature.column + c];
      }
    }
    double divisor = 1;
    if (feature.pooling == RowPooling::kMean) divisor = sum;
    if (feature.pooling == RowPooling::kSqrtN) divisor = std::sqrt(squares);
    for (int64_t c = 0; c < feature.out_values(); ++c) {
      double& value = out[s * feature.out_values() + c];
      value = divisor == 0 ? 0 : value / divisor;
    }
  }
  return out;
}

template <typename T>
const T* PutOrNull(TestDevice* device, const std::vector<T>& values) {
  return values.empty() ? nullptr : device->Put(values);
}

// The lists of a launch.
struct Lists {
  std::vector<GatherFeature> features;
  std::vector<GatherSegment> segments;

  void Add(const GatherFeature& feature, const std::vector<GatherSegment>& of_feature) {
    features.push_back(feature);
    features.back().first_segment = static_cast<int32_t>(segments.size());
    for (const GatherSegment& segment : of_feature) {
      features.back().groups += (segment.width + 3) / 4;
      segments.push_back(segment);
    }
  }
  void Run(TestDevice* device, int64_t samples) const {
    GatherAndPool(device->stream(), device->Put(features), static_cast<int>(features.size()),
                  device->Put(segments), samples);
  }
};

// A feature without its table. The samples' values and lengths have gaps between them.
GatherFeature EntryOf(TestDevice* device, const Feature& feature) {
  GatherFeature entry = {};
  entry.table_rows = kRows;
  entry.scale = 1;
  entry.max_length = feature.max_length;
  entry.pooling = feature.pooling;
  entry.rows = device->Put(feature.rows);
  entry.offsets = PutOrNull(device, feature.offsets);
  entry.weights = PutOrNull(device, feature.weights);
  entry.lengths_stride = 2;
  entry.lengths = device->Room<float>(kSamples * 2);
  return entry;
}
template <typename Out>
GatherSegment SegmentOf(TestDevice* device, const Feature& feature, bool aligned) {
  GatherSegment segment = {};
  segment.column = feature.column;
  segment.width = feature.width;
  segment.type = ElementTypeOf<Out>();
  segment.aligned = aligned ? 1 : 0;
  segment.out_stride = feature.out_values() + kGap;
  segment.out = device->Room<Out>(kSamples * segment.out_stride);
  return segment;
}

template <typename Out>
void ExpectPools(TestDevice* device, const std::vector<Feature>& features, bool aligned,
                 double tolerance) {
  const auto table = RandomValues(kRows * kRowValues, 9);
  std::vector<float> spread(kRows * (kRowValues + kGap), NAN);
  for (int64_t i = 0; i < kRows * kRowValues; ++i) {
    spread[i / kRowValues * (kRowValues + kGap) + i % kRowValues] = table[i];
  }
  const float* const rows = device->Put(spread);
  Lists lists;
  for (const Feature& feature : features) {
    GatherFeature entry = EntryOf(device, feature);
    entry.table = rows;
    entry.table_stride = kRowValues + kGap;
    lists.Add(entry, {SegmentOf<Out>(device, feature, aligned)});
  }
  lists.Run(device, kSamples);
  for (size_t f = 0; f < features.size(); ++f) {
    const auto expected = Pooled(features[f], table);
    const int64_t width = features[f].out_values(), stride = lists.segments[f].out_stride;
    const auto got = device->Get(static_cast<const Out*>(lists.segments[f].out), kSamples * stride);
    for (int64_t i = 0; i < kSamples * stride; ++i) {
      const float value = ToFloat(got[i]);
      if (i % stride >= width) {
        ASSERT_TRUE(std::isnan(value)) << "between the samples";
        continue;
      }
      ASSERT_NEAR(value, expected[i / stride * width + i % stride], tolerance) << f << " " << i;
    }
    const auto lengths = device->Get(lists.features[f].lengths, kSamples * 2);
    const auto& offsets = features[f].offsets;
    for (int64_t s = 0; s < kSamples; ++s) {
      const int64_t ids = offsets.empty() ? 1 : offsets[s + 1] - offsets[s];
      ASSERT_EQ(lengths[2 * s], static_cast<float>(std::min<int64_t>(ids, features[f].max_length)));
    }
  }
}

TEST_P(KernelTest, FeaturesOfATableArePooledInOneLaunch) {
  std::vector<Feature> aligned, ragged;
  for (const RowPooling pooling :
       {RowPooling::kSum, RowPooling::kMean, RowPooling::kSqrtN, RowPooling::kNone}) {
    for (const bool jagged : {false, true}) {
      for (const bool weighted : {false, true}) {
        aligned.push_back(RandomFeature(pooling, 4, 16, jagged, weighted));
        ragged.push_back(RandomFeature(pooling, 3, 17, jagged, weighted));
        ragged.push_back(RandomFeature(pooling, 23, 1, jagged, weighted));
      }
    }
  }
  ExpectPools<float>(&device_, aligned, true, 1e-5);
  ExpectPools<float>(&device_, ragged, false, 1e-5);
  ExpectPools<Bf16>(&device_, aligned, true, 0.03);
  ExpectPools<Half>(&device_, ragged, false, 0.005);
}

TEST_P(KernelTest, ADivisorOfZeroGivesZerosEvenIfTheSumIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  GatherFeature feature = {};
  feature.table = device_.Put(std::vector<float>{infinity, 1});
  feature.table_stride = 2;
  feature.table_rows = 1;
  feature.scale = 1;
  feature.max_length = 1;
  feature.pooling = RowPooling::kMean;
  feature.rows = device_.Put(std::vector<uint32_t>{0, 0});
  feature.offsets = device_.Put(std::vector<uint32_t>{0, 2});
  feature.weights = device_.Put(std::vector<float>{1, -1});
  float* const out = device_.Room<float>(2);
  Lists lists;
  lists.Add(feature, {{0, 2, out, 2, ElementType::kF32, 0}});
  lists.Run(&device_, 1);
  EXPECT_EQ(device_.Get(out, 2), (std::vector<float>{0, 0}));
}

// There are so many features that each of them gets few blocks, which handle more samples than they
// have threads. Each sample has its own row.
TEST_P(KernelTest, ManySamplesTakeOneRowEach) {
  constexpr int64_t kFeatures = 2048, kMany = 2100;
  const auto rows = RandomValues(kMany * 3, 5);
  GatherFeature feature = {};
  feature.table = device_.Put(rows);
  feature.table_stride = 3;
  feature.table_rows = kMany;
  feature.scale = 1;
  feature.max_length = 1;
  float* const out = device_.Room<float>(kFeatures * kMany);
  Lists lists;
  for (int64_t f = 0; f < kFeatures; ++f) {
    lists.Add(feature,
              {{static_cast<int32_t>(f % 3), 1, out + f * kMany, 1, ElementType::kF32, 0}});
  }
  lists.Run(&device_, kMany);
  const auto got = device_.Get(out, kFeatures * kMany);
  for (int64_t i = 0; i < kFeatures * kMany; ++i) {
    ASSERT_EQ(got[i], rows[i % kMany * 3 + i / kMany % 3]) << i;
  }
}

// Tests a table as it may arrive: without gaps, at an address that is aligned only to the size of a
// value, and of any type. One feature reads a part of the columns, another reads all in two
// segments.
template <typename Row>
void ExpectRows(TestDevice* device, int32_t width, float scale) {
  constexpr int64_t kFew = 40;
  const int64_t stride = width + 1;
  std::vector<Row> table(1 + kFew * stride);
  SplitMix64 random(width);
  for (Row& value : table) {
    value = FromFloat<Row>(static_cast<float>(random.Below(256)) / 64 - 2);
  }
  std::vector<uint32_t> ids;
  for (int64_t s = 0; s < kSamples; ++s) ids.push_back(static_cast<uint32_t>(random.Below(kFew)));
  ids[3] = kFew - 1;
  GatherFeature feature = {};
  feature.table = device->Put(table) + 1;
  feature.table_stride = stride;
  feature.table_rows = kFew;
  feature.type = ElementTypeOf<Row>();
  feature.scale = scale;
  feature.max_length = 1;
  feature.rows = device->Put(ids);
  const int64_t padded = (width + 3) / 4 * 4;
  float* const values = device->Room<float>(kSamples * padded);
  float* const linear = device->Room<float>(kSamples);
  float* const alone = device->Room<float>(kSamples);
  Lists lists;
  lists.Add(feature, {{0, width, values, padded, ElementType::kF32, 1},
                      {width, 1, linear, 1, ElementType::kF32, 0}});
  lists.Add(feature, {{width, 1, alone, 1, ElementType::kF32, 0}});
  lists.Run(device, kSamples);
  const auto got = device->Get(values, kSamples * padded);
  const auto got_linear = device->Get(linear, kSamples);
  for (int64_t s = 0; s < kSamples; ++s) {
    const Row* const row = &table[1 + ids[s] * stride];
    for (int64_t c = 0; c < padded; ++c) {
      if (c < width) {
        ASSERT_EQ(got[s * padded + c], scale * ToFloat(row[c])) << width << " " << s << " " << c;
      } else {
        ASSERT_TRUE(std::isnan(got[s * padded + c])) << "between the samples";
      }
    }
    ASSERT_EQ(got_linear[s], scale * ToFloat(row[width])) << width << " " << s;
  }
  EXPECT_EQ(device->Get(alone, kSamples), got_linear);
}

TEST_P(KernelTest, RowsOfAnyTypeBeginAnywhere) {
  for (const int32_t width : {1, 4, 10, 16, 17, 64, 128, 600}) {
    ExpectRows<float>(&device_, width, 1);
    ExpectRows<Half>(&device_, width, .25f);
    ExpectRows<Bf16>(&device_, width, 1);
  }
}

}  // namespace
}  // namespace satrap
