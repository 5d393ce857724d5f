#include "embedding_ps/request/decoded_update.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/payload.h"
#include "embedding_ps/request/request_tables.h"

namespace satrap {

namespace {

// The sample counts of `from`; empty if the request has none. A rule that divides or clips by
// counts must not get 0 for an unknown count. So an Update without counts is refused if the table
// needs them.
absl::StatusOr<absl::Span<const uint32_t>> SampleCounts(const TableUpdate& from,
                                                        const Buffer& payload, bool needed,
                                                        bool ordered) {
  absl::Span<const uint32_t> counts;
  if (from.has_counts()) {
    ASSIGN_OR_RETURN(counts, rpc::SectionView<uint32_t>(payload, from.counts(), from.num_keys(),
                                                        "tables.counts"));
  }
  if (!needed) return counts;
  if (counts.size() != from.num_keys()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tables.counts: the update rule of table ", from.table(),
                     " needs the sample counts of its keys, but the request has none"));
  }
  // In an ordered step a count of 0 is valid: all parts share the candidates, but only the first
  // part counts them.
  if (!ordered && std::find(counts.begin(), counts.end(), 0u) != counts.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tables.counts: a key of table ", from.table(), " has a sample count of 0"));
  }
  return counts;
}

// The part's share of its step (DecodedUpdate::part_share).
absl::StatusOr<double> PartShare(const UpdateHeader& header, const TableOwnership& ownership,
                                 absl::Span<const TableGradient> tables) {
  const auto needs = std::find_if(tables.begin(), tables.end(), [&](const TableGradient& table) {
    return ownership.tables[table.table].needs_part_share;
  });
  if (header.ordered() || needs == tables.end()) return 1;
  if (!header.has_weight() || !(header.weight() >= 0) || !std::isfinite(header.weight())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "weight: table ", ownership.tables[needs->table].id,
        " has a clip norm, so the part's weight must be given, finite and at least 0, got ",
        header.has_weight() ? absl::StrCat(header.weight()) : "none"));
  }
  return header.weight() / header.step().normalizer();
}

}  // namespace

absl::StatusOr<DecodedUpdate> DecodeUpdate(const UpdateHeader& header, const Buffer& payload,
                                           const TableOwnership& ownership) {
  DecodedUpdate update;
  update.payload = payload;
  if (header.has_data_time_ms()) update.data_time_ms = header.data_time_ms();
  update.widened.reserve(header.tables_size());
  RequestTables named(&ownership);
  std::vector<rpc::WireValues> gradients;  // of update.tables
  gradients.reserve(header.tables_size());
  for (const TableUpdate& from : header.tables()) {
    TableGradient table;
    ASSIGN_OR_RETURN(table.table, named.AddTable(from.table()));
    const int row_values = ownership.tables[table.table].row_values;
    if (from.row_values() != static_cast<uint32_t>(row_values)) {
      return absl::InvalidArgumentError(absl::StrCat("tables.row_values: table ", from.table(),
                                                     " has ", row_values, " values per row, got ",
                                                     from.row_values()));
    }
    const uint64_t num_keys = from.num_keys();
    ASSIGN_OR_RETURN(table.keys,
                     rpc::SectionView<uint64_t>(payload, from.keys(), num_keys, "tables.keys"));
    RETURN_IF_ERROR(ownership.CheckOwned(table.keys));
    ASSIGN_OR_RETURN(const rpc::WireValues values,
                     rpc::WireView(payload, from.gradients(), header.dtype(), num_keys * row_values,
                                   "tables.gradients"));
    gradients.push_back(values);
    ASSIGN_OR_RETURN(table.sample_counts,
                     SampleCounts(from, payload, ownership.tables[table.table].needs_sample_counts,
                                  header.ordered()));
    named.AddSection(from.keys(), "tables.keys");
    named.AddSection(from.gradients(), "tables.gradients");
    named.AddSection(from.counts(), "tables.counts");
    update.tables.push_back(table);
  }
  RETURN_IF_ERROR(named.CheckSectionsDisjoint());
  ASSIGN_OR_RETURN(update.part_share, PartShare(header, ownership, update.tables));
  // The whole request has been checked, so it is safe to allocate memory for it. f32 gradients are
  // used in place; 16-bit gradients are widened here, once.
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (header.dtype() == F32) {
      update.tables[i].gradients = absl::MakeConstSpan(
          reinterpret_cast<const float*>(gradients[i].bytes), gradients[i].count);
    } else {
      std::vector<float>& widened = update.widened.emplace_back(gradients[i].count);
      rpc::DecodeWire(gradients[i], absl::MakeSpan(widened));
      update.tables[i].gradients = widened;
    }
  }
  return update;
}

}  // namespace satrap
