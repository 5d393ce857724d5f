// A PlannedPart is one NN worker's share of a global batch, as an embedding worker holds it: the
// checked data that the loader sent, and the plan of its lookups.
//
// Immutable after Make.

#ifndef SATRAP_EMBEDDING_WORKER_PLANNED_PART_H_
#define SATRAP_EMBEDDING_WORKER_PLANNED_PART_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/buffer.h"
#include "common/batch/pooling.h"
#include "embedding_worker/candidates/part_candidates.h"
#include "embedding_worker/embedding_layout.h"
#include "embedding_worker/lookup_plan.h"
#include "proto/hot.pb.h"

namespace satrap {

struct PlannedPart {
  PartDescription description;       // sections in `payload`
  std::vector<FeatureIds> features;  // sections in `payload`; one entry for each feature of the job
  Buffer payload;
  LookupPlan plan;
  absl::optional<PartCandidates> candidates;  // of the train stream, with model.candidates

  // The ids of a feature as rows of the plan, with the offsets and weights that the loader has
  // sent.
  RowIndices IndicesOf(int feature) const;

  // The latest of the records' times, in milliseconds since 1970; nullopt if they have no times.
  absl::optional<int64_t> LatestTime() const;

  // The sum of the samples' weights; the number of samples if they have no weights.
  double Weight() const;

  // INVALID_ARGUMENT, naming the field, if a count or section of the header does not fit the
  // payload or the job, if the offsets of a feature are wrong, or if candidates are needed and a
  // sample does not have exactly one item. `source` draws the candidates; it is null if none are
  // needed. REQUIRES: header.has_part()
  static absl::StatusOr<PlannedPart> Make(const EmbeddingLayout& layout,
                                          const PutBatchHeader& header, Buffer payload,
                                          PlanScratch* scratch,
                                          const CandidateSource* source = nullptr);
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_PLANNED_PART_H_
