// The bi-interaction of NFM (He and Chua 2017).   n fields of d  y: [d]
//   y = 1/2 ((sum_f v_f)^2 - sum_f v_f^2), element by element

#ifndef SATRAP_NN_WORKER_LAYER_BI_INTERACTION_H_
#define SATRAP_NN_WORKER_LAYER_BI_INTERACTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewBiInteractionLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_BI_INTERACTION_H_
