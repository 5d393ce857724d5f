// The backward path of gradients: from a PushGradients, along the part's plan, to Updates of the
// embedding PSs. What the NN worker sends for each row or sample becomes one sum for each unique
// key.
//
// Pure function; thread-safe.

#ifndef SATRAP_EMBEDDING_WORKER_GRADIENT_PUSH_H_
#define SATRAP_EMBEDDING_WORKER_GRADIENT_PUSH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/payload.h"
#include "common/rpc/rpc.h"
#include "embedding_worker/embedding_layout.h"
#include "embedding_worker/planned_part.h"
#include "embedding_worker/ps_fan_out.h"
#include "proto/hot.pb.h"

namespace satrap {

struct PlannedUpdates {
  std::vector<PsRequest> requests;
  uint64_t gradient_values = 0;  // in all of them
  rpc::WireLosses losses;        // of those values. If there are many, the job needs another dtype.
};

// The Updates of a push, in the order of PSs. Each has the fields of `update`, without envelope and
// call, gradients of its dtype, and the tables of which the PS has keys. PSs without keys are left
// out unless `update.ordered()`; if push.step().finite() is false no Update has keys.
//
// INVALID_ARGUMENT, naming the field, unless the push has the gradients of each table with sent
// rows and of each POOLED feature (they may be left out for a table of no rows and a part of no
// samples), once each and in the right shape.
absl::StatusOr<PlannedUpdates> MakeUpdates(const EmbeddingLayout& layout, const PlannedPart& part,
                                           const PushGradientsHeader& push, const Buffer& payload,
                                           const UpdateHeader& update, int num_ps);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_GRADIENT_PUSH_H_
