#include "nn_worker/trainer/part_view.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

absl::Status ReadDense(const PartLayout& layout, size_t max_samples, const PartInput& input,
                       PartView* view) {
  const PartDescription& part = input.header.part();
  if (part.samples() > max_samples) {
    return absl::InvalidArgumentError(
        absl::StrCat("part.samples: must be at most ", max_samples, ", got ", part.samples()));
  }
  if (part.numerics() != layout.numerics || part.tasks() != layout.labels) {
    return absl::InvalidArgumentError(absl::StrCat("part has ", part.numerics(), " numerics and ",
                                                   part.tasks(), " tasks; the job has ",
                                                   layout.numerics, " and ", layout.labels));
  }
  if (layout.groups != part.has_groups()) {
    return absl::InvalidArgumentError(
        absl::StrCat("part.groups: ", layout.groups ? "absent, but a" : "present, but no",
                     " column of the job is a GROUP"));
  }
  const Buffer& payload = input.payload;
  view->samples = part.samples();
  view->first_sample = part.first_sample();
  ASSIGN_OR_RETURN(view->numeric,
                   rpc::SectionView<float>(payload, part.numeric_values(),
                                           view->samples * layout.numerics, "numeric_values"));
  ASSIGN_OR_RETURN(view->labels, rpc::SectionView<float>(payload, part.labels(),
                                                         view->samples * layout.labels, "labels"));
  if (part.has_label_mask()) {
    ASSIGN_OR_RETURN(view->mask,
                     rpc::SectionView<uint8_t>(payload, part.label_mask(),
                                               view->samples * layout.labels, "label_mask"));
  }
  if (part.has_weights()) {
    ASSIGN_OR_RETURN(view->weights,
                     rpc::SectionView<float>(payload, part.weights(), view->samples, "weights"));
  }
  if (part.has_groups()) {
    ASSIGN_OR_RETURN(view->groups,
                     rpc::SectionView<uint64_t>(payload, part.groups(), view->samples, "groups"));
  }
  if (part.has_times()) {
    ASSIGN_OR_RETURN(view->times,
                     rpc::SectionView<int64_t>(payload, part.times(), view->samples, "times"));
  }
  return absl::OkStatus();
}

// Rows arrive only for tables with a feature that is pooled here, in the order of the job's tables.
absl::Status ReadTables(const PartLayout& layout, const PartInput& input, PartView* view) {
  view->tables.resize(layout.tables.size());
  int sent = 0;
  for (size_t t = 0; t < layout.tables.size(); ++t) {
    const TableLayout& table = layout.tables[t];
    if (!table.sends_rows) continue;
    if (sent == input.header.tables_size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tables: the rows of ", table.name, " are missing"));
    }
    const TableRows& rows = input.header.tables(sent++);
    if (rows.table() != table.id || rows.row_values() != table.row_values) {
      return absl::InvalidArgumentError(
          absl::StrCat("tables: expected table ", table.name, " with ", table.row_values,
                       " values a row, got table ", rows.table(), " with ", rows.row_values()));
    }
    view->tables[t].num_rows = rows.num_rows();
    ASSIGN_OR_RETURN(view->tables[t].values,
                     rpc::WireView(input.payload, rows.values(), input.header.dtype(),
                                   rows.num_rows() * table.row_values,
                                   absl::StrCat("tables[", table.name, "].values")));
  }
  if (sent != input.header.tables_size()) {
    return absl::InvalidArgumentError("tables: the answer has more tables than the job");
  }
  return absl::OkStatus();
}

absl::Status ReadFeature(const PartLayout& layout, const FeatureLayout& feature,
                         const FeatureRows& rows, const PartInput& input, const PartView& view,
                         PartView::Feature* out) {
  const std::string field = absl::StrCat("features[", feature.name, "]");
  if (feature.pooled_at_worker) {
    ASSIGN_OR_RETURN(
        out->pooled,
        rpc::WireView(input.payload, rows.pooled(), input.header.dtype(),
                      view.samples * layout.tables[feature.table].row_values, field + ".pooled"));
    return absl::OkStatus();
  }
  RowIndices& indices = out->indices;
  indices.samples = view.samples;
  ASSIGN_OR_RETURN(indices.rows, rpc::SectionView<uint32_t>(input.payload, rows.indices(),
                                                            rows.num_ids(), field + ".indices"));
  if (rows.has_offsets()) {
    ASSIGN_OR_RETURN(indices.offsets,
                     rpc::SectionView<uint32_t>(input.payload, rows.offsets(), view.samples + 1,
                                                field + ".offsets"));
  }
  if (rows.has_weights()) {
    ASSIGN_OR_RETURN(indices.weights, rpc::SectionView<float>(input.payload, rows.weights(),
                                                              rows.num_ids(), field + ".weights"));
  }
  // After this check, gathering rows needs no check of its own.
  return CheckRowIndices(indices, view.tables[feature.table].num_rows, field);
}

absl::Status CheckFinite(absl::Span<const float> values, absl::string_view field) {
  for (const float value : values) {
    if (!std::isfinite(value)) {
      return absl::InvalidArgumentError(absl::StrCat(field, ": not finite"));
    }
  }
  return absl::OkStatus();
}

// If the job has candidates, every part that is trained has them, and no other part has.
absl::Status ReadCandidates(const PartLayout& layout, const PartInput& input, PartView* view) {
  const bool expected =
      layout.candidate_feature >= 0 && input.header.part().id().stream() == TRAIN_STREAM;
  if (input.header.has_candidates() != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("candidates: ", expected ? "absent from" : "present in", " a part of ",
                     Stream_Name(input.header.part().id().stream()),
                     expected ? ""
                              : ", but only parts of TRAIN_STREAM have candidates, and only if the "
                                "job has model.candidates"));
  }
  if (!expected) return absl::OkStatus();
  const CandidateRows& rows = input.header.candidates();
  PartView::Candidates& candidates = view->candidates;
  const uint64_t most = static_cast<uint64_t>(layout.inputs.max_candidates);
  if (rows.num_candidates() > most) {
    return absl::InvalidArgumentError(absl::StrCat("candidates.num_candidates: must be at most ",
                                                   most, ", got ", rows.num_candidates()));
  }
  candidates.indices.samples = rows.num_candidates();
  ASSIGN_OR_RETURN(candidates.indices.rows,
                   rpc::SectionView<uint32_t>(input.payload, rows.indices(), rows.num_candidates(),
                                              "candidates.indices"));
  const FeatureLayout& feature = layout.features[layout.candidate_feature];
  RETURN_IF_ERROR(CheckRowIndices(candidates.indices, view->tables[feature.table].num_rows,
                                  "candidates.indices"));
  const RowIndices& own = view->features[layout.candidate_feature].indices;
  if (!own.offsets.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "features[", feature.name, "].offsets: must be absent, because each sample has one item"));
  }
  candidates.positives = own.rows;
  const size_t known = layout.log_q ? 1 : 0;
  ASSIGN_OR_RETURN(candidates.log_q,
                   rpc::SectionView<float>(input.payload, rows.log_q(),
                                           known * rows.num_candidates(), "candidates.log_q"));
  ASSIGN_OR_RETURN(candidates.positive_log_q,
                   rpc::SectionView<float>(input.payload, rows.positive_log_q(),
                                           known * view->samples, "candidates.positive_log_q"));
  RETURN_IF_ERROR(CheckFinite(candidates.log_q, "candidates.log_q"));
  return CheckFinite(candidates.positive_log_q, "candidates.positive_log_q");
}

}  // namespace

absl::StatusOr<PartView> ReadPart(const PartLayout& layout, size_t max_samples,
                                  const PartInput& input) {
  PartView view;
  view.dtype = input.header.dtype();
  view.payload = {input.payload.data(), input.payload.size()};
  RETURN_IF_ERROR(ReadDense(layout, max_samples, input, &view));
  RETURN_IF_ERROR(ReadTables(layout, input, &view));
  if (input.header.features_size() != static_cast<int>(layout.features.size())) {
    return absl::InvalidArgumentError(absl::StrCat("features: ", input.header.features_size(),
                                                   ", the job has ", layout.features.size()));
  }
  view.features.resize(layout.features.size());
  for (size_t f = 0; f < layout.features.size(); ++f) {
    RETURN_IF_ERROR(ReadFeature(layout, layout.features[f],
                                input.header.features(static_cast<int>(f)), input, view,
                                &view.features[f]));
  }
  RETURN_IF_ERROR(ReadCandidates(layout, input, &view));
  return view;
}

}  // namespace satrap
