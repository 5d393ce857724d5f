// What one embedding PS serves: the tables of the job, and the partitions that it owns.
//
// A value type; constant once made.

#ifndef SATRAP_EMBEDDING_PS_REQUEST_TABLE_OWNERSHIP_H_
#define SATRAP_EMBEDDING_PS_REQUEST_TABLE_OWNERSHIP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace satrap {

struct TableOwnership {
  struct Table {
    uint32_t id = 0;
    int row_values = 0;
    // The results of the methods of EmbeddingTable with these names.
    bool needs_sample_counts = false;
    bool needs_part_share = false;
  };
  std::vector<Table> tables;  // in the order of JobConfig.tables
  int ps_index = 0;
  int num_ps = 1;

  // The ownership of embedding PS `ps_index` of `job`. needs_sample_counts and needs_part_share are
  // left false: only the tables themselves know them.
  static TableOwnership Of(const JobConfig& job, int ps_index);

  // The range of partitions of embedding PS `ps_index` of `num_ps`; both ends are inclusive. It is
  // empty, with last < first, only if there are more PSs than partitions.
  struct Partitions {
    int first;
    int last;
  };
  static Partitions PartitionsOf(int ps_index, int num_ps);

  // The position of the table in `tables`. INVALID_ARGUMENT if the job has no table with this id.
  absl::StatusOr<int> PositionOf(uint32_t table_id) const;
  // INVALID_ARGUMENT, naming the key and its owner, if another PS owns one of `keys`.
  absl::Status CheckOwned(absl::Span<const uint64_t> keys) const;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_REQUEST_TABLE_OWNERSHIP_H_
