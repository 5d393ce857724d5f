#include "embedding_worker/planned_part.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rpc/payload.h"

namespace satrap {

namespace {

// Checks the sizes of the dense sections. Their values need no check: they are only passed on to
// the NN worker.
absl::Status CheckDescription(const PartDescription& part, const Buffer& payload) {
  const uint64_t samples = part.samples();
  struct Field {
    const char* name;
    bool present;
    const Section& section;
    uint64_t count;
    size_t value_bytes;
  };
  const Field fields[] = {
      {"part.numeric_values", true, part.numeric_values(), samples * part.numerics(), 4},
      {"part.labels", true, part.labels(), samples * part.tasks(), 4},
      {"part.label_mask", part.has_label_mask(), part.label_mask(), samples * part.tasks(), 1},
      {"part.weights", part.has_weights(), part.weights(), samples, 4},
      {"part.groups", part.has_groups(), part.groups(), samples, 8},
      {"part.times", part.has_times(), part.times(), samples, 8},
  };
  for (const Field& field : fields) {
    if (!field.present) continue;
    RETURN_IF_ERROR(
        rpc::CheckedSection(payload, field.section, field.count, field.value_bytes, field.name)
            .status());
  }
  return absl::OkStatus();
}

// The ids of feature `index`, as views of the payload. Checks only the size of the offsets;
// LookupPlan::Make checks their values.
absl::StatusOr<JaggedIds::Feature> IdsOf(const FeatureIds& feature, int index, uint64_t samples,
                                         const Buffer& payload) {
  const std::string field = absl::StrCat("features[", index, "]");
  JaggedIds::Feature ids;
  ASSIGN_OR_RETURN(ids.ids, rpc::SectionView<uint64_t>(payload, feature.ids(), feature.num_ids(),
                                                       absl::StrCat(field, ".ids")));
  if (feature.has_offsets()) {
    ASSIGN_OR_RETURN(ids.offsets,
                     rpc::SectionView<uint32_t>(payload, feature.offsets(), samples + 1,
                                                absl::StrCat(field, ".offsets")));
  }
  if (feature.has_weights()) {
    ASSIGN_OR_RETURN(auto weights,
                     rpc::SectionView<float>(payload, feature.weights(), feature.num_ids(),
                                             absl::StrCat(field, ".weights")));
    for (float weight : weights) {
      if (!std::isfinite(weight))
        return absl::InvalidArgumentError(absl::StrCat(field, ".weights: not finite"));
    }
  }
  return ids;
}

}  // namespace

RowIndices PlannedPart::IndicesOf(int feature) const {
  const FeatureIds& ids = features[feature];
  RowIndices indices;
  indices.samples = description.samples();
  indices.rows = plan.RowsOf(feature);
  if (ids.has_offsets()) {
    indices.offsets = payload.View<uint32_t>(ids.offsets().offset_bytes(), indices.samples + 1);
  }
  if (ids.has_weights())
    indices.weights = payload.View<float>(ids.weights().offset_bytes(), ids.num_ids());
  return indices;
}

absl::optional<int64_t> PlannedPart::LatestTime() const {
  if (!description.has_times() || description.samples() == 0) return absl::nullopt;
  const absl::Span<const int64_t> times =
      payload.View<int64_t>(description.times().offset_bytes(), description.samples());
  return *std::max_element(times.begin(), times.end());
}

double PlannedPart::Weight() const {
  if (!description.has_weights()) return static_cast<double>(description.samples());
  double sum = 0;
  for (const float weight :
       payload.View<float>(description.weights().offset_bytes(), description.samples())) {
    sum += weight;
  }
  return sum;
}

absl::StatusOr<PlannedPart> PlannedPart::Make(const EmbeddingLayout& layout,
                                              const PutBatchHeader& header, Buffer payload,
                                              PlanScratch* scratch, const CandidateSource* source) {
  CHECK(header.has_part());
  RETURN_IF_ERROR(CheckDescription(header.part(), payload));
  if (static_cast<size_t>(header.features_size()) != layout.features.size()) {
    return absl::InvalidArgumentError(absl::StrCat("features: the message has ",
                                                   header.features_size(), ", but the job has ",
                                                   layout.features.size()));
  }
  JaggedIds ids;
  ids.samples = header.part().samples();
  for (int f = 0; f < header.features_size(); ++f) {
    ASSIGN_OR_RETURN(JaggedIds::Feature feature,
                     IdsOf(header.features(f), f, ids.samples, payload));
    ids.features.push_back(feature);
  }
  PlannedPart part;
  if (header.stream() == TRAIN_STREAM && layout.candidate_feature >= 0) {
    const int feature = layout.candidate_feature;
    const JaggedIds::Feature& items = ids.features[feature];
    if (!items.offsets.empty() || items.ids.size() != ids.samples) {
      return absl::InvalidArgumentError(
          absl::StrCat("features[", feature, "] (", layout.features[feature].name,
                       "): model.candidates needs one id per sample"));
    }
    part.candidates.emplace();
    if (source != nullptr) part.candidates = source->Draw(header.part().id(), items.ids);
    ids.candidates = part.candidates->ids;
    ids.counts_candidates = source == nullptr || source->CountsIn(header.part().id());
  }
  ASSIGN_OR_RETURN(part.plan, LookupPlan::Make(layout, ids, scratch));
  part.description = header.part();
  part.features.assign(header.features().begin(), header.features().end());
  part.payload = std::move(payload);
  return part;
}

}  // namespace satrap
