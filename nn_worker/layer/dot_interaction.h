// DLRM's interaction (Naumov et al. 2019).   n fields of d  y: [d + n (n - 1) / 2]
//   y = the first vector, then <v_i, v_j> for j < i: (1, 0), (2, 0), (2, 1), ...

#ifndef SATRAP_NN_WORKER_LAYER_DOT_INTERACTION_H_
#define SATRAP_NN_WORKER_LAYER_DOT_INTERACTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewDotInteractionLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_DOT_INTERACTION_H_
