// The forward path of values: makes Lookups of the embedding PSs from a part's plan, and the answer
// to the NN worker from the PSs' answers.
//
// Pure functions; thread-safe.

#ifndef SATRAP_EMBEDDING_WORKER_PART_LOOKUP_H_
#define SATRAP_EMBEDDING_WORKER_PART_LOOKUP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/rpc/rpc.h"
#include "embedding_worker/embedding_layout.h"
#include "embedding_worker/planned_part.h"
#include "embedding_worker/ps_fan_out.h"
#include "proto/hot.pb.h"

namespace satrap {

// One Lookup for each PS that has keys of the plan, in the order of PSs. Each has the fields of
// `header` (except envelope and call) and the tables of which the PS has keys.
std::vector<PsRequest> MakeLookups(const EmbeddingLayout& layout, const LookupPlan& plan,
                                   int num_ps, const LookupHeader& header);

// Makes the answer to NextBatch. It has the part's dense values and, for each feature, its rows or
// its pooled values in `dtype`. `answers` are those to the requests of MakeLookups, in the same
// order. INTERNAL, naming the PS, if an answer does not fit its request.
absl::StatusOr<rpc::Message> MakeNextBatchAnswer(const EmbeddingLayout& layout,
                                                 const PlannedPart& part, int num_ps,
                                                 absl::Span<const rpc::Message> answers,
                                                 uint64_t handle, WireDtype dtype);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_PART_LOOKUP_H_
