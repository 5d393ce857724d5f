#include "nn_worker/backend/cpu/cpu_row_exchange.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "common/batch/pooling.h"
#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap::cpu {
namespace {

FeatureConfig::Pooling PoolingOf(RowPooling pooling) {
  switch (pooling) {
    case RowPooling::kSum:
      return FeatureConfig::SUM;
    case RowPooling::kMean:
      return FeatureConfig::MEAN;
    case RowPooling::kSqrtN:
      return FeatureConfig::SQRT_N;
    case RowPooling::kNone:
      return FeatureConfig::NONE;
  }
  return FeatureConfig::SUM;
}

absl::Span<const uint32_t> Uints(const Tensor& tensor) {
  if (tensor.empty()) return {};
  return {UintsOf(tensor), static_cast<size_t>(tensor.cols)};
}

// The ids of samples [begin, end). Offsets count from the first id of the part, so with offsets all
// ids and weights are kept; without offsets they are limited to the samples.
RowIndices IndicesOf(const FeatureExchange& feature, int64_t begin, int64_t end) {
  RowIndices indices;
  indices.samples = end - begin;
  indices.rows = Uints(feature.ids);
  indices.offsets = Uints(feature.offsets);
  if (!feature.weights.empty()) {
    indices.weights = {FloatsOf(feature.weights), static_cast<size_t>(feature.weights.cols)};
  }
  if (!indices.offsets.empty()) {
    indices.offsets = indices.offsets.subspan(begin, indices.samples + 1);
    return indices;
  }
  indices.rows = indices.rows.subspan(begin, indices.samples);
  if (!indices.weights.empty()) indices.weights = indices.weights.subspan(begin, indices.samples);
  return indices;
}

size_t NumIds(const RowIndices& indices, size_t sample) {
  return indices.offsets.empty() ? 1 : indices.offsets[sample + 1] - indices.offsets[sample];
}

void CopyColumns(const float* from, int64_t from_stride, int64_t samples, int64_t width, float* to,
                 int64_t to_stride) {
  for (int64_t s = 0; s < samples; ++s) {
    std::memcpy(to + s * to_stride, from + s * from_stride, width * sizeof(float));
  }
}

RowColumns ColumnsOf(const RowSegment& segment, int64_t row_values) {
  return {static_cast<size_t>(row_values), static_cast<size_t>(segment.column),
          static_cast<size_t>(segment.width)};
}

// SequenceForward writes its samples without gaps, but the rows of a tensor may have gaps, so each
// sample is a separate call.
void GatherSequences(const FeatureExchange& feature, const RowSegment& segment, int64_t begin,
                     int64_t end) {
  uint32_t length = 0;
  for (int64_t s = begin; s < end; ++s) {
    SequenceForward(IndicesOf(feature, s, s + 1), feature.max_length, FloatsOf(feature.rows),
                    ColumnsOf(segment, feature.rows.cols), FloatsOf(segment.values, s),
                    segment.width, absl::MakeSpan(&length, 1));
  }
}

}  // namespace

void GatherSamples(const FeatureExchange& feature, int64_t begin, int64_t end) {
  const int64_t row_values = feature.rows.cols;
  for (const RowSegment& segment : feature.segments) {
    if (feature.one_row_a_sample) {
      CopyColumns(FloatsOf(feature.rows, begin) + segment.column, row_values, end - begin,
                  segment.width, FloatsOf(segment.values, begin), segment.values.stride);
    } else if (feature.pooling == RowPooling::kNone) {
      GatherSequences(feature, segment, begin, end);
    } else {
      PoolForward(PoolingOf(feature.pooling), IndicesOf(feature, begin, end),
                  FloatsOf(feature.rows), ColumnsOf(segment, row_values),
                  FloatsOf(segment.values, begin), segment.values.stride);
    }
  }
  if (feature.lengths.empty()) return;
  const RowIndices indices = IndicesOf(feature, begin, end);
  const size_t most = feature.max_length;
  for (int64_t s = begin; s < end; ++s) {
    *FloatsOf(feature.lengths, s) = static_cast<float>(std::min(most, NumIds(indices, s - begin)));
  }
}

void ScatterFeature(const FeatureExchange& feature, const Tensor& gradients) {
  for (const RowSegment& segment : feature.segments) {
    const RowColumns columns = ColumnsOf(segment, gradients.cols);
    float* const to = FloatsOf(gradients);
    if (feature.one_row_a_sample) {
      CopyColumns(FloatsOf(segment.values), segment.values.stride, feature.samples, segment.width,
                  to + segment.column, gradients.cols);
    } else if (feature.pooling != RowPooling::kNone) {
      PoolBackward(PoolingOf(feature.pooling), IndicesOf(feature, 0, feature.samples),
                   FloatsOf(segment.values), segment.values.stride, columns, to);
    } else {
      for (int64_t s = 0; s < feature.samples; ++s) {
        SequenceBackward(IndicesOf(feature, s, s + 1), feature.max_length,
                         FloatsOf(segment.values, s), segment.width, columns, to);
      }
    }
  }
}

bool AssignsEveryValue(absl::Span<const FeatureExchange> features, const Tensor& gradients) {
  if (features.size() != 1 || !features[0].one_row_a_sample) return false;
  int64_t width = 0;
  for (const RowSegment& segment : features[0].segments) width += segment.width;
  return width == gradients.cols;
}

}  // namespace satrap::cpu
