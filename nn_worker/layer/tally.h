// y = 0; dx = a constant, whatever dy.   xs: [d_1], [d_2], ...  y: [1]
//
// It counts samples in the rows of its inputs (TallyConfig, proto/model.proto).

#ifndef SATRAP_NN_WORKER_LAYER_TALLY_H_
#define SATRAP_NN_WORKER_LAYER_TALLY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewTallyLayer(const TallyConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_TALLY_H_
