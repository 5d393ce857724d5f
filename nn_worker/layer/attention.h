// Multi-head self-attention (Vaswani et al. 2017; AutoInt, Song et al. 2019), with its residual.
//   x: [k, d]  y: [k, units]
//   y = concat over heads of softmax(Q K^T / sqrt(units / heads)) V + x W_residual
//   Q, K, V = x times a weight each, without bias; x itself is the residual if d is `units`

#ifndef SATRAP_NN_WORKER_LAYER_ATTENTION_H_
#define SATRAP_NN_WORKER_LAYER_ATTENTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT unless `heads` divides `units` and both are at least 1, and `layers` is 1: the
// graph expands the others, and the layer norm and ReLU behind each.
absl::StatusOr<std::unique_ptr<Layer>> NewAttentionLayer(const AttentionConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_ATTENTION_H_
