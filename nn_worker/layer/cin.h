// The compressed interaction network of xDeepFM (Lian et al. 2018).   n fields of d  y: [sum of units]
//   X^k_h = sum_ij W^k_hij (X^{k-1}_i * X^0_j) + b^k_h; y = the sums over d of all X^k_h
//
// For a product, the pairs (i, j) of a column d of a sample are laid out as a row of H_{k-1} n values.
// That is done for a tile of samples at a time, forward and again backward: for all samples it would
// take d times the memory of everything else.

#ifndef SATRAP_NN_WORKER_LAYER_CIN_H_
#define SATRAP_NN_WORKER_LAYER_CIN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT unless there are units, each at least 1.
absl::StatusOr<std::unique_ptr<Layer>> NewCinLayer(const CinConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_CIN_H_
