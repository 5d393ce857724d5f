// Ranges of the first axis, one output for each.   x: [d] or [k, d]  y_i: [size_i] or [size_i, d]

#ifndef SATRAP_NN_WORKER_LAYER_SLICE_H_
#define SATRAP_NN_WORKER_LAYER_SLICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT unless there are ranges, each from 0 on and of at least one element.
absl::StatusOr<std::unique_ptr<Layer>> NewSliceLayer(const SliceConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_SLICE_H_
