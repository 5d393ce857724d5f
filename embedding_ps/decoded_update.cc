#include "embedding_ps/decoded_update.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/config/job_config.h"
#include "common/hash.h"
#include "common/rpc/payload.h"
#include "common/status_macros.h"

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

absl::StatusOr<DecodedUpdate> DecodeUpdate(const UpdateHeader& header, const Buffer& payload,
                                           const TableOwnership& ownership) {
  DecodedUpdate update;
  update.payload = payload;
  update.widened.reserve(header.tables_size());
  absl::flat_hash_set<int> seen;
  for (const TableUpdate& from : header.tables()) {
    TableGradient table;
    ASSIGN_OR_RETURN(table.table, ownership.PositionOf(from.table()));
    if (!seen.insert(table.table).second) {
      return absl::InvalidArgumentError(absl::StrCat("tables.table: ", from.table(), " twice"));
    }
    const int row_values = ownership.tables[table.table].row_values;
    if (from.row_values() != static_cast<uint32_t>(row_values)) {
      return absl::InvalidArgumentError(absl::StrCat("tables.row_values: table ", from.table(),
                                                     " has ", row_values, ", got ",
                                                     from.row_values()));
    }
    const uint64_t num_keys = from.num_keys();
    ASSIGN_OR_RETURN(table.keys,
                     rpc::SectionView<uint64_t>(payload, from.keys(), num_keys, "tables.keys"));
    RETURN_IF_ERROR(ownership.CheckOwned(table.keys));
    ASSIGN_OR_RETURN(const rpc::WireValues gradients,
                     rpc::WireView(payload, from.gradients(), header.dtype(), num_keys * row_values,
                                   "tables.gradients"));
    if (header.dtype() == F32) {
      table.gradients =
          absl::MakeConstSpan(reinterpret_cast<const float*>(gradients.bytes), gradients.count);
    } else {
      std::vector<float>& widened = update.widened.emplace_back(gradients.count);
      rpc::DecodeWire(gradients, absl::MakeSpan(widened));
      table.gradients = widened;
    }
    if (from.has_counts()) {
      ASSIGN_OR_RETURN(table.sample_counts, rpc::SectionView<uint32_t>(payload, from.counts(),
                                                                       num_keys, "tables.counts"));
    }
    update.tables.push_back(table);
  }
  return update;
}

}  // namespace satrap
