#include "embedding_ps/request/table_ownership.h"

#include "absl/strings/str_cat.h"
#include "common/config/job_facts.h"
#include "common/numeric/hash.h"

namespace satrap {

TableOwnership TableOwnership::Of(const JobConfig& job, int ps_index) {
  TableOwnership ownership;
  ownership.ps_index = ps_index;
  ownership.num_ps = job.embedding_ps().replicas();
  for (const TableConfig& table : job.tables()) {
    ownership.tables.push_back({table.id(), RowValues(table)});
  }
  return ownership;
}

TableOwnership::Partitions TableOwnership::PartitionsOf(int ps_index, int num_ps) {
  // Returns the first partition p with p * num_ps / kNumPartitions >= i.
  const auto first_of = [&](int64_t i) {
    return static_cast<int>((i * kNumPartitions + num_ps - 1) / num_ps);
  };
  return {first_of(ps_index), first_of(ps_index + 1) - 1};
}

absl::StatusOr<int> TableOwnership::PositionOf(uint32_t table_id) const {
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i].id == table_id) return static_cast<int>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat("tables.table: this job has no table ", table_id));
}

absl::Status TableOwnership::CheckOwned(absl::Span<const uint64_t> keys) const {
  if (num_ps == 1) return absl::OkStatus();
  for (const uint64_t key : keys) {
    const int owner = PsOfPartition(PartitionOf(key), num_ps);
    if (owner != ps_index) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tables.keys: key ", key, " belongs to embedding PS ", owner, ", not to ", ps_index));
    }
  }
  return absl::OkStatus();
}

}  // namespace satrap
