// Reduces a model to the layers that are needed to compute some of its values. This serves
// predictions that are vectors, and models whose heads can only be computed in training.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_OUTPUT_MODEL_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_OUTPUT_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn_worker/graph/model/graph_inputs.h"
#include "proto/model.pb.h"

namespace satrap {

// Returns `model` with only the layers that `outputs` need, and with one task for each output, in
// their order. A task here only names a value to compute: build the graph with GraphUse::kOutputs.
// Outputs are named in the same way as inputs of layers: a layer, "LAYER:1", "numeric",
// "FEATURE.SEGMENT" or "FEATURE.length", but not "*.SEGMENT".
//
// INVALID_ARGUMENT if an output does not exist; the message lists the possible outputs.
// INVALID_ARGUMENT also if an output needs candidates, which only the parts of training have: the
// output of a layer candidate_logits or in_batch_logits, the rows of candidates, and anything that
// is computed from one of these. REQUIRES: outputs is not empty
absl::StatusOr<ModelConfig> ModelOfOutputs(const ModelConfig& model, const GraphInputs& inputs,
                                           const std::vector<std::string>& outputs);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_OUTPUT_MODEL_H_
