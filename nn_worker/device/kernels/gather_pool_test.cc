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

// A feature with 0 to 4 ids per sample and offsets if `jagged`; otherwise with one id per sample
// and no offsets.
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

// The target of a feature. The rows of its table are `table_stride` values apart. The samples'
// values and lengths have gaps between them.
template <typename Out>
GatherTarget TargetOf(TestDevice* device, const Feature& feature, const float* table,
                      int64_t table_stride, bool aligned) {
  GatherTarget target = {};
  target.table = table + feature.column;
  target.table_stride = table_stride;
  target.width = feature.width;
  target.max_length = feature.max_length;
  target.pooling = feature.pooling;
  target.type = ElementTypeOf<Out>();
  target.aligned = aligned;
  target.rows = device->Put(feature.rows);
  target.offsets = PutOrNull(device, feature.offsets);
  target.weights = PutOrNull(device, feature.weights);
  target.out_stride = feature.out_values() + kGap;
  target.out = device->Room<Out>(kSamples * target.out_stride);
  target.lengths_stride = 2;
  target.lengths = device->Room<float>(kSamples * 2);
  return target;
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
  std::vector<GatherTarget> targets;
  for (const Feature& feature : features) {
    targets.push_back(TargetOf<Out>(device, feature, rows, kRowValues + kGap, aligned));
  }
  GatherAndPool(device->stream(), device->Put(targets), static_cast<int>(targets.size()), kSamples);
  for (size_t f = 0; f < features.size(); ++f) {
    const auto expected = Pooled(features[f], table);
    const int64_t width = features[f].out_values(), stride = targets[f].out_stride;
    const auto got = device->Get(static_cast<const Out*>(targets[f].out), kSamples * stride);
    for (int64_t i = 0; i < kSamples * stride; ++i) {
      const float value = ToFloat(got[i]);
      if (i % stride >= width) {
        ASSERT_TRUE(std::isnan(value)) << "between the samples";
        continue;
      }
      ASSERT_NEAR(value, expected[i / stride * width + i % stride], tolerance) << f << " " << i;
    }
    const auto lengths = device->Get(targets[f].lengths, kSamples * 2);
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
  GatherTarget target = {};
  target.table = device_.Put(std::vector<float>{infinity, 1});
  target.table_stride = target.out_stride = target.width = 2;
  target.max_length = 1;
  target.pooling = RowPooling::kMean;
  target.rows = device_.Put(std::vector<uint32_t>{0, 0});
  target.offsets = device_.Put(std::vector<uint32_t>{0, 2});
  target.weights = device_.Put(std::vector<float>{1, -1});
  target.out = device_.Room<float>(2);
  GatherAndPool(device_.stream(), device_.Put(std::vector<GatherTarget>{target}), 1, 1);
  EXPECT_EQ(device_.Get(static_cast<const float*>(target.out), 2), (std::vector<float>{0, 0}));
}

// There are more samples than the largest grid handles at once; each sample has its own row.
TEST_P(KernelTest, ManySamplesTakeOneRowEach) {
  constexpr int64_t kMany = 2048 * 32 + 1000;
  const auto rows = RandomValues(kMany * 3, 5);
  GatherTarget target = {};
  target.table = device_.Put(rows) + 1;
  target.table_stride = 3;
  target.width = 2;
  target.max_length = 1;
  target.out_stride = 2;
  target.out = device_.Room<float>(kMany * 2);
  GatherAndPool(device_.stream(), device_.Put(std::vector<GatherTarget>{target}), 1, kMany);
  const auto got = device_.Get(static_cast<const float*>(target.out), kMany * 2);
  for (int64_t i = 0; i < kMany * 2; ++i) ASSERT_EQ(got[i], rows[i / 2 * 3 + 1 + i % 2]) << i;
}

}  // namespace
}  // namespace satrap
