#include "nn_worker/device/kernels/scatter_rows.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
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

// The groups and sources of segments that begin and end at `bounds`.
struct Spans {
  std::vector<ScatterGroup> groups;
  std::vector<ScatterSource> sources;  // of each feature

  explicit Spans(const std::vector<int32_t>& bounds) : bounds_(bounds) {
    for (int32_t span = 0; span < count(); ++span) {
      for (int32_t c = bounds[span]; c < bounds[span + 1]; c += 4) {
        groups.push_back({c, std::min(4, bounds[span + 1] - c), span, c - bounds[span]});
      }
    }
  }
  int32_t count() const { return static_cast<int32_t>(bounds_.size()) - 1; }
  void AddFeature() { sources.resize(sources.size() + count()); }
  // Of the last feature.
  void AddSegment(const Segment& segment, ScatterSource source) {
    for (int32_t span = 0; span < count(); ++span) {
      if (bounds_[span] != segment.column) continue;
      source.position_stride = segment.width;
      sources[sources.size() - count() + span] = source;
    }
  }

 private:
  const std::vector<int32_t> bounds_;
};

// Copies the lists to the device. `of_row` lists the numbers of each row's ids.
ScatterArgs ArgsOf(TestDevice* device, const std::vector<std::vector<uint32_t>>& of_row,
                   const Spans& spans, uint32_t samples) {
  std::vector<uint32_t> starts = {0}, ids;
  for (const auto& row : of_row) {
    ids.insert(ids.end(), row.begin(), row.end());
    starts.push_back(static_cast<uint32_t>(ids.size()));
  }
  ScatterArgs args = {};
  args.starts = device->Put(starts);
  args.ids = device->Put(ids);
  args.samples = samples;
  args.num_ids = static_cast<uint32_t>(ids.size());
  args.groups = device->Put(spans.groups);
  args.sources = device->Put(spans.sources);
  args.num_groups = static_cast<int32_t>(spans.groups.size());
  args.num_spans = spans.count();
  const int64_t cols = spans.groups.back().column + spans.groups.back().count;
  args.pieces = device->Room<float>(PieceRows(args.num_ids) * PieceColumns(cols));
  args.large_rows = device->Room<uint32_t>(PieceRows(args.num_ids));
  return args;
}

// Runs ScatterRows with gaps between the rows of all matrices. Returns the gradients of all rows.
// With `mixed`, every second segment is F32.
template <typename In>
std::vector<float> Scatter(TestDevice* device, const std::vector<Feature>& features, Spans spans,
                           int64_t gap = kGap, bool mixed = false) {
  std::vector<ScatterFeature> list;
  std::vector<std::vector<uint32_t>> of_row(kRows);
  uint32_t number = 0;
  for (const Feature& feature : features) {
    ScatterFeature entry = {};
    entry.pooling = feature.pooling;
    entry.max_length = feature.max_length;
    entry.offsets = device->Put(feature.offsets);
    entry.weights = feature.weighted ? device->Put(feature.weights) : nullptr;
    entry.first_id = number;
    spans.AddFeature();
    for (size_t i = 0; i < feature.segments.size(); ++i) {
      const int64_t cols = feature.positions() * feature.segments[i].width, stride = cols + gap;
      const auto source = [&](auto zero) {
        using T = decltype(zero);
        std::vector<T> spread(kSamples * stride, FromFloat<T>(NAN));
        for (int64_t k = 0; k < kSamples * cols; ++k) {
          spread[k / cols * stride + k % cols] = FromFloat<T>(feature.gradients[i][k]);
        }
        return ScatterSource{device->Put(spread), static_cast<int32_t>(stride), 0,
                             ElementTypeOf<T>(), 0};
      };
      spans.AddSegment(feature.segments[i], mixed && i % 2 == 0 ? source(0.0f) : source(In{}));
    }
    list.push_back(entry);
    for (const uint32_t row : feature.ids) of_row[row].push_back(number++);
  }
  ScatterArgs args = ArgsOf(device, of_row, spans, kSamples);
  args.type = ElementTypeOf<In>();
  args.mixed = mixed;
  IdPlace* const places = device->Room<IdPlace>(number);
  LocateIds(device->stream(), device->Put(list), static_cast<int>(list.size()), kSamples, places);
  args.places = places;
  const int64_t stride = kRowValues + gap;
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
const std::vector<int32_t> kAlignedBounds = {0, 4, 16, 20}, kRaggedBounds = {0, 1, 2, 19, 20};

TEST_P(KernelTest, GradientsAreSummedByRow) {
  for (const bool aligned : {false, true}) {
    const std::vector<Feature> features = Features(aligned ? kAligned : kRagged);
    const Spans spans(aligned ? kAlignedBounds : kRaggedBounds);
    ExpectSums(features, Scatter<float>(&device_, features, spans), 1e-4);
    ExpectSums(features, Scatter<Half>(&device_, features, spans), 0.1);
    ExpectSums(features, Scatter<Bf16>(&device_, features, spans), 1);
    ExpectSums(features, Scatter<Bf16>(&device_, features, spans, kGap, /*mixed=*/true), 1);
  }
}

TEST_P(KernelTest, RowSumsHaveTheSameBitsInEveryOrderAndWithOrWithoutWideAccesses) {
  const std::vector<Feature> features = Features(kAligned);
  TestDevice forward;
  const auto expected = Scatter<float>(&forward, features, Spans(kAlignedBounds));
  EXPECT_EQ(Scatter<float>(&device_, features, Spans(kAlignedBounds)), expected);
  EXPECT_EQ(Scatter<float>(&device_, features, Spans(kAlignedBounds), kGap + 1), expected);
}

// Sums as scatter_rows.h says: pieces of 256, then pieces of 256 sums, and so on.
float SumInPieces(std::vector<float> values) {
  while (values.size() > 256) {
    std::vector<float> sums;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i % 256 == 0) sums.push_back(0);
      sums.back() += values[i];
    }
    values = std::move(sums);
  }
  float sum = 0;
  for (const float value : values) sum += value;
  return sum;
}

// Every feature has one id in each sample. Row r gets counts[r] ids, spread over all ids, and one
// more row gets the ids that are left. The columns are a segment of `width` values, and a segment
// of a single value, whose gradients have the type Single.
template <typename In, typename Single = In>
void ExpectSumsOfCounts(TestDevice* device, std::vector<uint32_t> counts, int32_t width) {
  constexpr uint32_t kFields = 3;
  uint32_t num_ids = 0;
  for (const uint32_t count : counts) num_ids += count;
  counts.push_back((kFields - num_ids % kFields) % kFields);
  num_ids += counts.back();
  const uint32_t samples = num_ids / kFields;
  // The ids of the rows follow each other in steps of a prime number.
  std::vector<std::vector<uint32_t>> of_row(counts.size());
  uint64_t next = 0;
  for (size_t r = 0; r < counts.size(); ++r) {
    for (uint32_t i = 0; i < counts[r]; ++i) {
      of_row[r].push_back(static_cast<uint32_t>(next % num_ids));
      next += 2654435761;
    }
    std::sort(of_row[r].begin(), of_row[r].end());
  }
  Spans spans({0, width, width + 1});
  std::vector<std::vector<float>> gradients;  // of each feature: its values, and the single ones
  for (uint32_t f = 0; f < kFields; ++f) {
    spans.AddFeature();
    for (const int32_t cols : {width, 1}) {
      const bool single = gradients.size() % 2 == 1;
      const auto values = RandomValues(static_cast<int64_t>(samples) * cols, f * 2 + cols);
      gradients.emplace_back();
      const auto source = [&](auto type) -> ScatterSource {
        using T = decltype(type);
        std::vector<T> rounded;
        for (const float value : values) {
          rounded.push_back(FromFloat<T>(value));
          gradients.back().push_back(ToFloat(rounded.back()));
        }
        return {device->Put(rounded), cols, 0, ElementTypeOf<T>(), 0};
      };
      spans.AddSegment({single ? width : 0, cols}, single ? source(Single{}) : source(In{}));
    }
  }
  ScatterArgs args = ArgsOf(device, of_row, spans, samples);
  args.type = ElementTypeOf<In>();
  args.mixed = !std::is_same_v<In, Single>;
  const auto rows = static_cast<int64_t>(counts.size());
  float* const out = device->Room<float>(rows * (width + 1));
  ScatterRows(device->stream(), args, MatrixOf(out, rows, width + 1));
  const auto got = device->Get(out, rows * (width + 1));
  for (int64_t r = 0; r < rows; ++r) {
    for (int32_t c = 0; c <= width; ++c) {
      std::vector<float> terms;
      for (const uint32_t id : of_row[r]) {
        const uint32_t f = id / samples, s = id % samples;
        terms.push_back(c < width ? gradients[2 * f][s * width + c] : gradients[2 * f + 1][s]);
      }
      ASSERT_EQ(got[r * (width + 1) + c], SumInPieces(terms)) << r << " " << c << " of " << width;
    }
  }
}

TEST_P(KernelTest, OneIdOfEachFeatureNeedsNoPlaces) {
  for (const int32_t width : {1, 4, 10, 16, 17, 64, 128, 1100}) {
    const std::vector<uint32_t> counts = {1, 0, 5, 2, 4, 0, 0, 17, 1};
    ExpectSumsOfCounts<float>(&device_, counts, width);
    ExpectSumsOfCounts<Half>(&device_, counts, width);
    ExpectSumsOfCounts<Bf16>(&device_, counts, width);
    ExpectSumsOfCounts<Bf16, float>(&device_, counts, width);
    ExpectSumsOfCounts<float, Half>(&device_, counts, width);
  }
}

TEST_P(KernelTest, ARowWithManyIdsIsSummedInPieces) {
  ExpectSumsOfCounts<float>(&device_, {256, 257, 0, 1, 511, 512, 513, 2, 255, 1100, 256}, 16);
  ExpectSumsOfCounts<Bf16>(&device_, {0, 257, 257, 257, 600, 256, 3}, 10);
  ExpectSumsOfCounts<Half>(&device_, {258}, 4);
  ExpectSumsOfCounts<Bf16, float>(&device_, {257, 2, 1100}, 16);
  ExpectSumsOfCounts<float>(&device_, {255}, 4);
  // There are so many ids that the sums of pieces are summed in pieces, too.
  ExpectSumsOfCounts<float>(&device_, {700, 256 * 256 + 1, 300, 1, 256 * 256, 256 * 515, 0}, 1);
}

// There are more rows than the largest grid handles at once, with one id each.
TEST_P(KernelTest, ManyRowsAreAllWritten) {
  constexpr uint32_t kMany = 4096 * 256 / 8;
  constexpr int32_t kWidth = 32;
  std::vector<std::vector<uint32_t>> of_row;
  for (uint32_t i = 0; i < kMany + 100; ++i) of_row.push_back({i});
  Spans spans({0, kWidth});
  spans.AddFeature();
  const auto gradient = RandomValues((kMany + 100) * kWidth, 3);
  spans.AddSegment({0, kWidth}, {device_.Put(gradient), kWidth, 0, ElementType::kF32, 0});
  float* const out = device_.Room<float>((kMany + 100) * kWidth);
  ScatterRows(device_.stream(), ArgsOf(&device_, of_row, spans, kMany + 100),
              MatrixOf(out, kMany + 100, kWidth));
  EXPECT_EQ(device_.Get(out, (kMany + 100) * kWidth), gradient);
}

}  // namespace
}  // namespace satrap
