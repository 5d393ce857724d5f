// Combines the rows of a feature's ids into the values of a sample, and takes gradients back to the
// rows: SUM, MEAN, SQRT_N and NONE (proto/data.proto, FeatureConfig.Pooling). For the ids j of
// sample s, with rows r_j and value weights w_j (1 if there are none):
//
//   SUM      out_s = sum_j w_j r_j
//   MEAN     out_s = sum_j w_j r_j / sum_j w_j
//   SQRT_N   out_s = sum_j w_j r_j / sqrt(sum_j w_j^2)
//   NONE     out_s[p] = w_j r_j for the p-th id j of s, p < max_length; zeros after the last
//
// A sample without ids, or with a divisor of zero, gives zeros and contributes no gradient. Value
// weights are constants: they scale the gradient of their row and receive none.
//
// Each sum is computed by one thread in f32, in the order of samples and ids, so its bits are
// reproducible. An id that occurs twice in a sample counts twice.
//
// Thread-safe: no state. Calls that write to different memory may run at the same time.

#ifndef SATRAP_COMMON_BATCH_POOLING_H_
#define SATRAP_COMMON_BATCH_POOLING_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/data.pb.h"

namespace satrap {

// The ids of one feature of a part. Each id is given as the number of its row. Refers to the
// caller's memory. To select samples [b, e) if there are offsets, take offsets [b, e] and keep all
// rows and weights; the first offset may then be above 0. Without offsets, take rows and weights
// [b, e).
struct RowIndices {
  size_t samples = 0;
  absl::Span<const uint32_t> rows;     // [num_ids]
  absl::Span<const uint32_t> offsets;  // [samples + 1]; empty: exactly one id a sample
  absl::Span<const float> weights;     // [num_ids]; empty: all 1
};

// INVALID_ARGUMENT, naming `field`, unless `offsets` starts at 0, never decreases and ends at
// `num_ids`. Empty offsets mean exactly one id per sample.
absl::Status CheckOffsets(absl::Span<const uint32_t> offsets, size_t samples, size_t num_ids,
                          absl::string_view field);

// INVALID_ARGUMENT, naming `field`, unless CheckOffsets accepts the offsets, there is a weight for
// each id or none at all, and each row is less than `num_rows`. Indices that pass are safe for all
// functions below.
absl::Status CheckRowIndices(const RowIndices& indices, size_t num_rows, absl::string_view field);

// The columns of a row matrix [num_rows, row_values] that one segment takes.
struct RowColumns {
  size_t row_values = 0;
  size_t column = 0;
  size_t width = 0;
};

// out[s * out_stride + c] = the pooled value of column c, for each sample s and c < columns.width.
// Overwrites. REQUIRES: pooling is not NONE; `indices` passed CheckRowIndices; `rows` is [num_rows,
// row_values]; out_stride >= width
void PoolForward(FeatureConfig::Pooling pooling, const RowIndices& indices, const float* rows,
                 const RowColumns& columns, float* out, size_t out_stride);

// row_gradients[row, column + c] += d out / d rows times out_gradients, for all samples in order.
// REQUIRES: as for PoolForward
void PoolBackward(FeatureConfig::Pooling pooling, const RowIndices& indices,
                  const float* out_gradients, size_t out_stride, const RowColumns& columns,
                  float* row_gradients);

// Pooling NONE: out[(s * max_length + p) * out_stride + c], and lengths[s] = min(ids of s,
// max_length). Overwrites, zeros included. REQUIRES: as for PoolForward; lengths.size() == samples
void SequenceForward(const RowIndices& indices, size_t max_length, const float* rows,
                     const RowColumns& columns, float* out, size_t out_stride,
                     absl::Span<uint32_t> lengths);

// Adds to row_gradients; gradients of positions after a sample's last id are ignored.
void SequenceBackward(const RowIndices& indices, size_t max_length, const float* out_gradients,
                      size_t out_stride, const RowColumns& columns, float* row_gradients);

}  // namespace satrap

#endif  // SATRAP_COMMON_BATCH_POOLING_H_
