// The interaction of FwFM (Pan et al. 2018).   n fields of d  y: [1]
//   y = sum over i < j of r_ij <v_i, v_j>

#ifndef SATRAP_NN_WORKER_LAYER_FWFM_H_
#define SATRAP_NN_WORKER_LAYER_FWFM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewFwfmLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_FWFM_H_
