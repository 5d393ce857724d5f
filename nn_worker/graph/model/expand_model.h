// The first half of building a graph. The result is a ModelConfig with only plain layers and exact
// input names:
//
//     "*.SEGMENT"   becomes FEATURE.SEGMENT of every feature that has it, in order
//     mlp, cross, cross_v2, attention
//                   become their layers (names in model.proto); as the name of an input, each
//                   of these names means the last of its layers
//     "LAYER:0"     becomes LAYER

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_EXPAND_MODEL_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_EXPAND_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn_worker/graph/model/graph_inputs.h"
#include "proto/model.pb.h"

namespace satrap {

struct ExpandedModel {
  std::vector<LayerConfig> layers;
  std::vector<std::string> outputs;  // of the tasks; without tasks, ModelConfig.output
};

// INVALID_ARGUMENT, naming the layer, for a missing name; for a name that contains one of ".*/:",
// is given twice or is that of a graph input; for a "*.SEGMENT" that no feature has; for an mlp
// without units; for a composite of no layers or of more than 64; and for an attention of several
// inputs. Does not check that inputs exist.
absl::StatusOr<ExpandedModel> ExpandModel(const ModelConfig& model, const GraphInputs& inputs);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_EXPAND_MODEL_H_
