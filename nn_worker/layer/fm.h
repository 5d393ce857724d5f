// The factorization machine's second-order term (Rendle 2010, lemma 3.1).   xs: [dim] each  y: [1]
//   y = 1/2 sum_d ((sum_f x_fd)^2 - sum_f x_fd^2)

#ifndef SATRAP_NN_WORKER_LAYER_FM_H_
#define SATRAP_NN_WORKER_LAYER_FM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewFmLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_FM_H_
