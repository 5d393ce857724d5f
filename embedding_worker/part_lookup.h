// The way of values: from a part's plan to the Lookups of the embedding PSs, and from their answers
// to the NN worker's.
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
// `header` and the tables of which the PS has keys.
std::vector<PsRequest> MakeLookups(const EmbeddingLayout& layout, const LookupPlan& plan,
                                   int num_ps, const LookupHeader& header);

// What `answers`, in the order of MakeLookups' requests, say, as the answer to NextBatch: the
// part's dense values, and by feature its rows or pooled values in `dtype`. INTERNAL, naming the
// PS, if an answer does not fit its request.
absl::StatusOr<rpc::Message> MakeNextBatchAnswer(const EmbeddingLayout& layout,
                                                 const PlannedPart& part, int num_ps,
                                                 absl::Span<const rpc::Message> answers,
                                                 uint64_t handle, WireDtype dtype);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_PART_LOOKUP_H_
