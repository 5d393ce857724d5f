// The interaction of FFM (Juan et al. 2016).   n fields of (n - 1) d  y: [1]
//   y = sum over i < j of <v_i^(j), v_j^(i)>; field i holds the vectors for 0, ..., i - 1, i + 1, ...

#ifndef SATRAP_NN_WORKER_LAYER_FIELD_AWARE_INTERACTION_H_
#define SATRAP_NN_WORKER_LAYER_FIELD_AWARE_INTERACTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewFieldAwareInteractionLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_FIELD_AWARE_INTERACTION_H_
