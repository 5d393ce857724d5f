// y = the mean, sum or maximum of the positions of a sequence before its end, column by column;
// zeros for an empty one.   xs: [length, dim], [1] (the positions that count)  y: [dim]

#ifndef SATRAP_NN_WORKER_LAYER_SEQUENCE_POOL_H_
#define SATRAP_NN_WORKER_LAYER_SEQUENCE_POOL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewSequencePoolLayer(const SequencePoolConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_SEQUENCE_POOL_H_
