// An Update as the tables take it: checked against the job, gradients in f32.
//
// Thread-compatible.

#ifndef SATRAP_EMBEDDING_PS_DECODED_UPDATE_H_
#define SATRAP_EMBEDDING_PS_DECODED_UPDATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/buffer.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// What a PS may be asked about: its tables, and which partitions it owns.
struct TableOwnership {
  struct Table {
    uint32_t id = 0;
    int row_values = 0;
  };
  std::vector<Table> tables;  // in the order of JobConfig.tables
  int ps_index = 0;
  int num_ps = 1;

  static TableOwnership Of(const JobConfig& job, int ps_index);

  // Position of the table in `tables`. INVALID_ARGUMENT if there is none with this id.
  absl::StatusOr<int> PositionOf(uint32_t table_id) const;
  // INVALID_ARGUMENT naming the key and its owner if a key is not this PS's.
  absl::Status CheckOwned(absl::Span<const uint64_t> keys) const;
};

struct TableGradient {
  int table = 0;                             // position in the job
  absl::Span<const uint64_t> keys;           // unique
  absl::Span<const float> gradients;         // [keys.size(), row_values]
  absl::Span<const uint32_t> sample_counts;  // [keys.size()], or empty
};

struct DecodedUpdate {
  std::vector<TableGradient> tables;
  // What the spans point into.
  Buffer payload;
  std::vector<std::vector<float>> widened;
};

// Checks every count, offset and key of an Update before anything is applied. INVALID_ARGUMENT
// names the field.
absl::StatusOr<DecodedUpdate> DecodeUpdate(const UpdateHeader& header, const Buffer& payload,
                                           const TableOwnership& ownership);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_DECODED_UPDATE_H_
