// A vector for each numeric column, times the value.   x: [k]  y: [k, dim]

#ifndef SATRAP_NN_WORKER_LAYER_NUMERIC_EMBEDDING_H_
#define SATRAP_NN_WORKER_LAYER_NUMERIC_EMBEDDING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT unless dim is at least 1 and stddev is finite and not negative.
absl::StatusOr<std::unique_ptr<Layer>> NewNumericEmbeddingLayer(
    const NumericEmbeddingConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_NUMERIC_EMBEDDING_H_
