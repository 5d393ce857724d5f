#include "embedding_ps/request/decoded_lookup.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/payload.h"
#include "embedding_ps/request/request_tables.h"

namespace satrap {

absl::StatusOr<std::vector<TableLookup>> DecodeLookup(const LookupHeader& header,
                                                      const Buffer& payload,
                                                      const TableOwnership& ownership,
                                                      WireDtype answer_dtype,
                                                      int64_t max_answer_bytes) {
  std::vector<TableLookup> tables;
  RequestTables named(&ownership);
  // Lays out the answer as PsEngine::Lookup does, but does not allocate it.
  rpc::PayloadBuilder answer;
  Section unused;
  for (const TableKeys& from : header.tables()) {
    TableLookup table;
    ASSIGN_OR_RETURN(table.table, named.AddTable(from.table()));
    ASSIGN_OR_RETURN(table.keys, rpc::SectionView<uint64_t>(payload, from.keys(), from.num_keys(),
                                                            "tables.keys"));
    named.AddSection(from.keys(), "tables.keys");
    RETURN_IF_ERROR(ownership.CheckOwned(table.keys));
    // Cannot overflow: the payload bounds num_keys, and the limits of a job bound row_values.
    const auto row_values = static_cast<uint64_t>(ownership.tables[table.table].row_values);
    answer.Reserve(answer_dtype, from.num_keys() * row_values, &unused);
    answer.Reserve<uint8_t>((from.num_keys() + 7) / 8, &unused);
    tables.push_back(table);
  }
  RETURN_IF_ERROR(named.CheckSectionsDisjoint());
  if (answer.size_bytes() > static_cast<uint64_t>(max_answer_bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tables.num_keys: the requested rows have ", answer.size_bytes(),
                     " bytes, but a message can have at most ", max_answer_bytes,
                     ": raise nn_worker.replicas, or lower global_batch_size"));
  }
  return tables;
}

}  // namespace satrap
