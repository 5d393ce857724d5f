// Scores of all items of the part for each of its samples, for in-batch softmax.
//   user [d], item [d]   y: one column for each sample j of the part, y_j = scale <u, v_j>
//
// The columns behind the part's samples are left as they are, and those of dy are not read.

#ifndef SATRAP_NN_WORKER_LAYER_IN_BATCH_LOGITS_H_
#define SATRAP_NN_WORKER_LAYER_IN_BATCH_LOGITS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewInBatchLogitsLayer(const InBatchLogitsConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_IN_BATCH_LOGITS_H_
