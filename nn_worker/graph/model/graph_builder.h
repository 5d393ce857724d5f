// Builds a Graph from a ModelConfig and the declared inputs, and reports what is wrong with a
// model.

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_GRAPH_BUILDER_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_GRAPH_BUILDER_H_

#include "absl/status/statusor.h"
#include "nn_worker/graph/model/graph.h"
#include "nn_worker/graph/model/graph_inputs.h"
#include "proto/model.pb.h"

namespace satrap {

enum class GraphUse {
  kTraining,  // outputs are what the tasks' losses take
  // For a graph whose outputs are only read (nn_worker/graph/model/output_model.h). Outputs may
  // have any shape and, like other tensors, have `dtype`.
  kOutputs,
};

// INVALID_ARGUMENT, naming the layer, its inputs and their shapes, for an unknown input, a cycle, a
// name given twice, shapes that do not fit, a layer whose output nobody reads, or an `output` whose
// shape is not [1]. `dtype` is that of all tensors with more than one value per sample. REQUIRES:
// model.layers is resolved; a zoo name alone is not enough
absl::StatusOr<Graph> BuildGraph(const ModelConfig& model, const GraphInputs& inputs,
                                 DType dtype = DType::kF32, GraphUse use = GraphUse::kTraining);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_GRAPH_BUILDER_H_
