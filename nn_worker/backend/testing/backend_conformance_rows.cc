// The part of BackendConformance that tests the exchange of rows with samples: GatherRows and
// ScatterGradients.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/numeric/random.h"
#include "nn_worker/backend/row_inverse.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/half_conformance.h"

namespace satrap {

Tensor BackendConformance::Uints(const std::vector<uint32_t>& values) {
  const Tensor tensor = New(1, static_cast<int64_t>(values.size()), 0, DType::kU32);
  CopyIn(backend_.get(), values, tensor);
  return tensor;
}

FeatureExchange BackendConformance::Feature(RowPooling pooling, int64_t samples, const HostIds& ids,
                                            Tensor rows) {
  FeatureExchange feature;
  feature.samples = samples;
  feature.rows = rows;
  feature.pooling = pooling;
  feature.ids = Uints(ids.rows);
  if (!ids.offsets.empty()) feature.offsets = Uints(ids.offsets);
  if (!ids.weights.empty()) feature.weights = Of({ids.weights});
  return feature;
}

RowInverse BackendConformance::Inverse(const std::vector<HostIds>& ids_of_features,
                                       size_t num_rows) {
  std::vector<absl::Span<const uint32_t>> spans;
  for (const HostIds& of_feature : ids_of_features) spans.push_back(of_feature.rows);
  HostRowInverse inverse;
  InvertIds(spans, num_rows, &inverse);
  return {Uints(inverse.starts), Uints(inverse.positions)};
}

FeatureExchange BackendConformance::Reference(FeatureExchange feature) {
  for (Tensor* tensor :
       {&feature.rows, &feature.ids, &feature.offsets, &feature.weights, &feature.lengths}) {
    *tensor = Reference(*tensor);
  }
  for (RowSegment& segment : feature.segments) segment.values = Reference(segment.values);
  return feature;
}

namespace {

// Random ids for `samples` samples. With `lists` there are offsets, and a sample has 0 to 4 ids.
// Some rows occur in many samples.
HostIds RandomIds(int64_t samples, uint32_t num_rows, bool lists, bool weights, uint64_t salt) {
  SplitMix64 random(salt);
  HostIds ids;
  if (lists) ids.offsets.push_back(0);
  for (int64_t s = 0; s < samples; ++s) {
    for (uint64_t n = lists ? random.Below(5) : 1; n > 0; --n) {
      ids.rows.push_back(static_cast<uint32_t>(random.Below(random.Below(2) == 0 ? 3 : num_rows)));
      if (weights) ids.weights.push_back(static_cast<float>(random.NextDouble() + .2));
    }
    if (lists) ids.offsets.push_back(static_cast<uint32_t>(ids.rows.size()));
  }
  return ids;
}

constexpr RowPooling kPoolings[] = {RowPooling::kSum, RowPooling::kMean, RowPooling::kSqrtN,
                                    RowPooling::kNone};

TEST_P(BackendConformance, GatherAndScatterAreTheReferences) {
  constexpr int64_t kSamples = 1100, kRows = 90, kWidth = 17, kMaxLength = 3;
  for (const RowPooling pooling : kPoolings) {
    for (const bool lists : {false, true}) {
      for (const bool weights : {false, true}) {
        // Two features of one table. Each has one segment for column 0 and one for columns 2 to 12,
        // so that column 1 is not read.
        const Tensor rows = Random(kRows, kWidth, 1);
        std::vector<HostIds> ids;
        std::vector<FeatureExchange> gather, scatter;
        for (int f = 0; f < 2; ++f) {
          ids.push_back(RandomIds(kSamples, kRows, lists, weights, 7 + f));
          gather.push_back(Feature(pooling, kSamples, ids[f], rows));
          gather[f].max_length = kMaxLength;
          scatter.push_back(gather[f]);
          for (const auto& [column, width] : {std::pair<int64_t, int64_t>{0, 1}, {2, 11}}) {
            const int64_t cols = pooling == RowPooling::kNone ? kMaxLength * width : width;
            gather[f].segments.push_back({column, width, New(kSamples, cols, cols + 5)});
            scatter[f].segments.push_back(
                {column, width, Random(kSamples, cols, 20 + f, cols + 2)});
          }
          if (pooling == RowPooling::kNone) gather[f].lengths = New(kSamples, 1, 4);
        }
        std::vector<FeatureExchange> want, want_scatter;
        for (int f = 0; f < 2; ++f) {
          want.push_back(Reference(gather[f]));
          want_scatter.push_back(Reference(scatter[f]));
        }
        backend_->GatherRows(gather);
        reference_->GatherRows(want);
        for (int f = 0; f < 2; ++f) {
          for (int s = 0; s < 2; ++s) {
            ExpectNear(gather[f].segments[s].values, want[f].segments[s].values, 1e-4);
          }
          if (pooling == RowPooling::kNone) ExpectNear(gather[f].lengths, want[f].lengths, 0);
        }
        // Earlier values of the gradients must be overwritten, even in columns that are not read.
        const Tensor gradients = Random(kRows, kWidth, 30);
        const Tensor want_gradients = NewReference(kRows, kWidth);
        const RowInverse inverse = Inverse(ids, kRows);
        const RowInverse want_inverse = {Reference(inverse.starts), Reference(inverse.positions)};
        backend_->ScatterGradients(scatter, inverse, gradients);
        reference_->ScatterGradients(want_scatter, want_inverse, want_gradients);
        ExpectNear(gradients, want_gradients, 2e-3);
      }
    }
  }
}

TEST_P(BackendConformance, PoolingByHand) {
  const Tensor rows = Of({{1, 10}, {2, 20}, {4, 40}});
  // The first sample has two ids, the second has the same id twice, and the third has none.
  HostIds ids;
  ids.rows = {0, 2, 1, 1};
  ids.offsets = {0, 2, 4, 4};
  ids.weights = {3, 1, 1, 3};
  struct Case {
    RowPooling pooling;
    std::vector<float> values, gradients;
  };
  const std::vector<Case> cases = {
      {RowPooling::kSum, {7, 70, 8, 80, 0, 0}, {3, 3, 8, 8, 1, 1}},
      {RowPooling::kMean, {1.75f, 17.5f, 2, 20, 0, 0}, {.75f, .75f, 2, 2, .25f, .25f}}};
  for (const Case& c : cases) {
    FeatureExchange feature = Feature(c.pooling, 3, ids, rows);
    feature.segments = {{0, 2, New(3, 2)}};
    backend_->GatherRows({feature});
    EXPECT_EQ(Values(feature.segments[0].values), c.values);
    const Tensor gradients = New(3, 2);
    feature.segments = {{0, 2, Of({{1, 1}, {2, 2}, {50, 50}})}};
    backend_->ScatterGradients({feature}, Inverse({ids}, 3), gradients);
    EXPECT_EQ(Values(gradients), c.gradients);
  }
}

TEST_P(BackendConformance, ASequenceKeepsItsFirstPositionsAndEndsInZeros) {
  const Tensor rows = Of({{1}, {2}, {4}});
  HostIds ids;
  ids.rows = {2, 1, 0, 1};
  ids.offsets = {0, 3, 3, 4};
  FeatureExchange feature = Feature(RowPooling::kNone, 3, ids, rows);
  feature.max_length = 2;
  feature.lengths = New(3, 1);
  const Tensor values = New(3, 2);
  backend_->Fill(values, 9);
  feature.segments = {{0, 1, values}};
  backend_->GatherRows({feature});
  EXPECT_EQ(Values(values), (std::vector<float>{4, 2, 0, 0, 2, 0}));
  EXPECT_EQ(Values(feature.lengths), (std::vector<float>{2, 0, 1}));
  feature.segments = {{0, 1, Of({{1, 2}, {100, 100}, {4, 100}})}};
  const Tensor gradients = New(3, 1);
  backend_->ScatterGradients({feature}, Inverse({ids}, 3), gradients);
  EXPECT_EQ(Values(gradients), (std::vector<float>{0, 6, 1}));
}

TEST_P(BackendConformance, ADivisorOfZeroGivesZerosAndNoGradient) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor rows = Of({{infinity}, {1}});
  HostIds ids;
  ids.rows = {0, 1};
  ids.offsets = {0, 2};
  ids.weights = {1, -1};
  FeatureExchange feature = Feature(RowPooling::kMean, 1, ids, rows);
  feature.segments = {{0, 1, New(1, 1)}};
  backend_->GatherRows({feature});
  EXPECT_EQ(Values(feature.segments[0].values), std::vector<float>{0});
  feature.segments = {{0, 1, Of({{infinity}})}};
  const Tensor gradients = New(2, 1);
  backend_->ScatterGradients({feature}, Inverse({ids}, 2), gradients);
  EXPECT_EQ(Values(gradients), (std::vector<float>{0, 0}));
}

TEST_P(BackendConformance, OneRowASampleIsACopyOfItsColumns) {
  const Tensor rows = Random(700, 9, 1);
  FeatureExchange feature;
  feature.samples = 700;
  feature.rows = rows;
  feature.one_row_a_sample = true;
  feature.segments = {{1, 3, New(700, 3, 8)}, {4, 1, New(700, 1)}};
  backend_->GatherRows({feature});
  for (const RowSegment& segment : feature.segments) {
    EXPECT_EQ(Values(segment.values), Values(rows.Columns(segment.column, segment.width)));
  }
  const Tensor gradients = Random(700, 9, 2);
  backend_->ScatterGradients({feature}, {}, gradients);
  for (const RowSegment& segment : feature.segments) {
    EXPECT_EQ(Values(gradients.Columns(segment.column, segment.width)), Values(segment.values));
  }
  EXPECT_EQ(Values(gradients.Columns(0, 1)), std::vector<float>(700, 0)) << "not read, no gradient";

  // The segments cover every column here, so there is nothing to clear.
  feature.segments = {{0, 4, New(700, 4)}, {4, 5, New(700, 5, 8)}};
  backend_->GatherRows({feature});
  backend_->ScatterGradients({feature}, {}, gradients);
  EXPECT_EQ(Values(gradients), Values(rows));
}

TEST_P(BackendConformance, NoSamplesAndNoFeaturesGiveNoGradient) {
  FeatureExchange feature = Feature(RowPooling::kSum, 0, HostIds(), New(4, 2));
  feature.segments = {{0, 2, New(0, 2)}};
  backend_->GatherRows({feature});
  backend_->GatherRows({});
  const Tensor gradients = Random(4, 2, 1), others = Random(4, 2, 2);
  backend_->ScatterGradients({feature}, Inverse({HostIds()}, 4), gradients);
  backend_->ScatterGradients({}, Inverse({}, 4), others);
  EXPECT_EQ(Values(gradients), std::vector<float>(8, 0));
  EXPECT_EQ(Values(others), std::vector<float>(8, 0));
}

TEST_P(HalfConformance, RowsAreExchangedInSixteenBits) {
  const HostIds one = {{0, 3, 3, 1}, {}, {}};
  const HostIds bag = {{2, 2, 0, 1, 3}, {0, 2, 2, 4, 5}, {.5f, 1, 2, 1, 1}};
  for (const DType dtype : kHalves) {
    const Tensor rows = Random(4, 5, 1);
    std::vector<FeatureExchange> halves, wants;
    std::vector<Twin> values;
    const auto add = [&](RowPooling pooling, const HostIds& ids, int64_t width) {
      FeatureExchange feature = Feature(pooling, 4, ids, rows);
      feature.max_length = 2;
      FeatureExchange want = Reference(feature);
      values.push_back(TwinOf(New(4, width * (pooling == RowPooling::kNone ? 2 : 1), 40, dtype)));
      feature.segments = {{1, width, values.back().half}};
      want.segments = {{1, width, values.back().want}};
      halves.push_back(std::move(feature));
      wants.push_back(std::move(want));
    };
    add(RowPooling::kSum, one, 4);
    add(RowPooling::kMean, bag, 3);
    add(RowPooling::kNone, bag, 2);
    backend_->GatherRows(halves);
    reference_->GatherRows(wants);
    for (const Twin& value : values) ExpectTwins(value);
    // The rounded values that the gather wrote now serve as gradients.
    for (size_t f = 0; f < values.size(); ++f) {
      wants[f].segments[0].values = TwinOf(values[f].half).want;
    }
    const Tensor gradients = New(4, 5), want = NewReference(4, 5);
    const RowInverse inverse = Inverse({one, bag, bag}, 4);
    backend_->ScatterGradients(halves, inverse, gradients);
    reference_->ScatterGradients(wants, {Reference(inverse.starts), Reference(inverse.positions)},
                                 want);
    ExpectNear(gradients, want, 1e-5);
  }
}

}  // namespace
}  // namespace satrap
