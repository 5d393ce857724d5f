#include "common/batch/pooling.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace satrap {

namespace {

// The number of columns of a row that are handled at a time. It is a constant, because the compiler
// vectorises a loop whose length it knows.
constexpr size_t kBlock = 8;
// How many ids ahead a row is prefetched into the cache.
constexpr size_t kPrefetchDistance = 16;

inline void CopyRow(const float* __restrict from, size_t width, float* __restrict to) {
  size_t c = 0;
  for (; c + kBlock <= width; c += kBlock) {
    for (size_t i = 0; i < kBlock; ++i) to[c + i] = from[c + i];
  }
  for (; c < width; ++c) to[c] = from[c];
}

inline void AddRow(const float* __restrict from, size_t width, float* __restrict to) {
  size_t c = 0;
  for (; c + kBlock <= width; c += kBlock) {
    for (size_t i = 0; i < kBlock; ++i) to[c + i] += from[c + i];
  }
  for (; c < width; ++c) to[c] += from[c];
}

inline void AddScaledRow(const float* __restrict from, float scale, size_t width,
                         float* __restrict to) {
  size_t c = 0;
  for (; c + kBlock <= width; c += kBlock) {
    for (size_t i = 0; i < kBlock; ++i) to[c + i] += scale * from[c + i];
  }
  for (; c < width; ++c) to[c] += scale * from[c];
}

// The ids of a sample: [begin, end).
struct IdRange {
  size_t begin;
  size_t end;
};

inline IdRange IdsOf(const RowIndices& indices, size_t sample) {
  if (indices.offsets.empty()) return {sample, sample + 1};
  return {indices.offsets[sample], indices.offsets[sample + 1]};
}

inline float WeightOf(const RowIndices& indices, size_t id) {
  return indices.weights.empty() ? 1.f : indices.weights[id];
}

// The factor that the sample's sum is multiplied by: 1 / the divisor of its pooling, or 0 if that
// divisor is 0.
float ScaleOf(FeatureConfig::Pooling pooling, const RowIndices& indices, IdRange ids) {
  if (pooling == FeatureConfig::SUM || ids.begin == ids.end) return 1;
  float divisor = static_cast<float>(ids.end - ids.begin);
  if (!indices.weights.empty()) {
    divisor = 0;
    for (size_t j = ids.begin; j < ids.end; ++j) {
      const float weight = indices.weights[j];
      divisor += pooling == FeatureConfig::MEAN ? weight : weight * weight;
    }
  }
  if (pooling == FeatureConfig::SQRT_N) divisor = std::sqrt(divisor);
  return divisor == 0 ? 0 : 1 / divisor;
}

// True if the value of a sample is simply the row of its only id.
bool IsPlainGather(FeatureConfig::Pooling pooling, const RowIndices& indices) {
  if (!indices.offsets.empty()) return false;
  // With a weight w, SQRT_N and MEAN of a single id are w r / |w| and w r / w. The general case
  // computes them, so that a weight has the same effect whatever the number of ids.
  return indices.weights.empty() && pooling != FeatureConfig::NONE;
}

inline void PrefetchRow(const RowIndices& indices, size_t id, const float* rows,
                        const RowColumns& columns) {
  if (id >= indices.rows.size()) return;
  const float* row = rows + indices.rows[id] * columns.row_values + columns.column;
  __builtin_prefetch(row);
  if (columns.width > 1) __builtin_prefetch(row + columns.width - 1);
}

}  // namespace

absl::Status CheckOffsets(absl::Span<const uint32_t> offsets, size_t samples, size_t num_ids,
                          absl::string_view field) {
  if (offsets.empty()) {
    if (num_ids == samples) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": without offsets each sample must have exactly one id, got ", num_ids,
                     " ids for ", samples, " samples"));
  }
  if (offsets.size() != samples + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", offsets.size(), " offsets for ", samples, " samples"));
  }
  if (offsets.front() != 0 || offsets.back() != num_ids) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": offsets must go from 0 to ", num_ids,
                                                   ", the number of ids, but go from ",
                                                   offsets.front(), " to ", offsets.back()));
  }
  for (size_t s = 0; s < samples; ++s) {
    if (offsets[s] > offsets[s + 1]) {
      return absl::InvalidArgumentError(absl::StrCat(field, ": offsets decrease at sample ", s));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRowIndices(const RowIndices& indices, size_t num_rows, absl::string_view field) {
  const size_t num_ids = indices.rows.size();
  absl::Status status = CheckOffsets(indices.offsets, indices.samples, num_ids, field);
  if (!status.ok()) return status;
  if (!indices.weights.empty() && indices.weights.size() != num_ids) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", indices.weights.size(), " weights for ", num_ids, " ids"));
  }
  for (size_t j = 0; j < num_ids; ++j) {
    if (indices.rows[j] >= num_rows) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": id ", j, " is row ", indices.rows[j], " of ", num_rows));
    }
  }
  return absl::OkStatus();
}

void PoolForward(FeatureConfig::Pooling pooling, const RowIndices& indices, const float* rows,
                 const RowColumns& columns, float* out, size_t out_stride) {
  CHECK(pooling != FeatureConfig::NONE);
  const size_t width = columns.width;
  if (IsPlainGather(pooling, indices)) {
    for (size_t s = 0; s < indices.samples; ++s, out += out_stride) {
      PrefetchRow(indices, s + kPrefetchDistance, rows, columns);
      __builtin_prefetch(out + kPrefetchDistance * out_stride, /*rw=*/1);
      CopyRow(rows + indices.rows[s] * columns.row_values + columns.column, width, out);
    }
    return;
  }
  for (size_t s = 0; s < indices.samples; ++s, out += out_stride) {
    std::fill_n(out, width, 0.f);
    const IdRange ids = IdsOf(indices, s);
    for (size_t j = ids.begin; j < ids.end; ++j) {
      PrefetchRow(indices, j + kPrefetchDistance, rows, columns);
      AddScaledRow(rows + indices.rows[j] * columns.row_values + columns.column,
                   WeightOf(indices, j), width, out);
    }
    const float scale = ScaleOf(pooling, indices, ids);
    if (scale == 1) continue;
    // If the divisor is 0, the result is 0, as for a sample without ids, even if the sum is
    // infinite.
    for (size_t c = 0; c < width; ++c) out[c] = scale == 0 ? 0 : out[c] * scale;
  }
}

void PoolBackward(FeatureConfig::Pooling pooling, const RowIndices& indices,
                  const float* out_gradients, size_t out_stride, const RowColumns& columns,
                  float* row_gradients) {
  CHECK(pooling != FeatureConfig::NONE);
  const size_t width = columns.width;
  const float* gradient = out_gradients;
  if (IsPlainGather(pooling, indices)) {
    for (size_t s = 0; s < indices.samples; ++s, gradient += out_stride) {
      PrefetchRow(indices, s + kPrefetchDistance, row_gradients, columns);
      __builtin_prefetch(gradient + kPrefetchDistance * out_stride);
      AddRow(gradient, width,
             row_gradients + indices.rows[s] * columns.row_values + columns.column);
    }
    return;
  }
  for (size_t s = 0; s < indices.samples; ++s, gradient += out_stride) {
    const IdRange ids = IdsOf(indices, s);
    const float scale = ScaleOf(pooling, indices, ids);
    if (scale == 0) continue;
    for (size_t j = ids.begin; j < ids.end; ++j) {
      PrefetchRow(indices, j + kPrefetchDistance, row_gradients, columns);
      AddScaledRow(gradient, scale * WeightOf(indices, j), width,
                   row_gradients + indices.rows[j] * columns.row_values + columns.column);
    }
  }
}

void SequenceForward(const RowIndices& indices, size_t max_length, const float* rows,
                     const RowColumns& columns, float* out, size_t out_stride,
                     absl::Span<uint32_t> lengths) {
  CHECK(lengths.size() == indices.samples);
  for (size_t s = 0; s < indices.samples; ++s) {
    const IdRange ids = IdsOf(indices, s);
    const size_t length = std::min(ids.end - ids.begin, max_length);
    lengths[s] = static_cast<uint32_t>(length);
    for (size_t p = 0; p < max_length; ++p, out += out_stride) {
      std::fill_n(out, columns.width, 0.f);
      if (p >= length) continue;
      const size_t j = ids.begin + p;
      AddScaledRow(rows + indices.rows[j] * columns.row_values + columns.column,
                   WeightOf(indices, j), columns.width, out);
    }
  }
}

void SequenceBackward(const RowIndices& indices, size_t max_length, const float* out_gradients,
                      size_t out_stride, const RowColumns& columns, float* row_gradients) {
  for (size_t s = 0; s < indices.samples; ++s) {
    const IdRange ids = IdsOf(indices, s);
    const size_t length = std::min(ids.end - ids.begin, max_length);
    const float* gradient = out_gradients + s * max_length * out_stride;
    for (size_t p = 0; p < length; ++p, gradient += out_stride) {
      const size_t j = ids.begin + p;
      AddScaledRow(gradient, WeightOf(indices, j), columns.width,
                   row_gradients + indices.rows[j] * columns.row_values + columns.column);
    }
  }
}

}  // namespace satrap
