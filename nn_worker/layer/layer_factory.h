// Makes a layer from its configuration. A new layer is one file, one test, one field of
// LayerConfig's `kind`, and one line in layer_factory.cc. Composites (mlp) are not layers: the
// graph expands them.

#ifndef SATRAP_NN_WORKER_LAYER_LAYER_FACTORY_H_
#define SATRAP_NN_WORKER_LAYER_LAYER_FACTORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT, naming the field, if a value is out of its range (proto/options.proto), if the
// kind is missing, or if it is a composite.
absl::StatusOr<std::unique_ptr<Layer>> NewLayer(const LayerConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_LAYER_FACTORY_H_
