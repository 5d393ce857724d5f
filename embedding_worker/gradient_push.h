// The backward path of gradients: turns a PushGradients, by the part's plan, into Updates of the
// embedding PSs. The NN worker sends gradients for rows or for samples; these are summed for each
// unique key.
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
  uint64_t gradient_values = 0;  // the number of gradient values in all Updates
  rpc::WireLosses losses;        // of these values; many losses mean that another dtype is needed
};

// The Updates of a push, in the order of PSs. Each has the fields of `update` (except envelope and
// call), gradients in the dtype of `update`, and the tables of which the PS has keys. PSs without
// keys are left out unless `update.ordered()`. If push.step().finite() is false, no Update has
// keys.
//
// INVALID_ARGUMENT, naming the field, unless the push has the gradients of each table with sent
// rows and of each POOLED feature exactly once and in the right shape. They may be left out for a
// table without rows, and for a part without samples.
absl::StatusOr<PlannedUpdates> MakeUpdates(const EmbeddingLayout& layout, const PlannedPart& part,
                                           const PushGradientsHeader& push, const Buffer& payload,
                                           const UpdateHeader& update, int num_ps);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_GRADIENT_PUSH_H_
