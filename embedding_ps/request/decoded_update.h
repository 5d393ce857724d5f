// Decodes an Update into the form that the tables take, with gradients in f32, and checks it
// against the job.
//
// Thread-compatible.

#ifndef SATRAP_EMBEDDING_PS_REQUEST_DECODED_UPDATE_H_
#define SATRAP_EMBEDDING_PS_REQUEST_DECODED_UPDATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/buffer.h"
#include "embedding_ps/request/table_ownership.h"
#include "proto/hot.pb.h"

namespace satrap {

struct TableGradient {
  int table = 0;                             // position in the job
  absl::Span<const uint64_t> keys;           // unique
  absl::Span<const float> gradients;         // [keys.size(), row_values]
  absl::Span<const uint32_t> sample_counts;  // [keys.size()]; empty: not known
};

struct DecodedUpdate {
  std::vector<TableGradient> tables;
  absl::optional<int64_t> data_time_ms;  // as UpdateHeader
  // The part's share of its step. In sync it is 1, because all parts are applied together. In
  // hybrid it is the part's weight divided by the normalizer, or 1 if no table of the Update needs
  // the share.
  double part_share = 1;
  // Owned memory that the spans above point into.
  Buffer payload;
  std::vector<std::vector<float>> widened;
};

// Decodes an Update. Checks every count, offset and key of it, and that it has the sample counts
// and the part's weight if the rules of a table need them. INVALID_ARGUMENT names the field.
absl::StatusOr<DecodedUpdate> DecodeUpdate(const UpdateHeader& header, const Buffer& payload,
                                           const TableOwnership& ownership);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_REQUEST_DECODED_UPDATE_H_
