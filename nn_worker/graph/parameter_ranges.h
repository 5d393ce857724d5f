// Finds, for each part of the flat buffer of parameters, the optimizer's rule that applies to it.
// The rules follow from the settings that a job gives to parameters by name (ParameterSettings).
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_GRAPH_PARAMETER_RANGES_H_
#define SATRAP_NN_WORKER_GRAPH_PARAMETER_RANGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn_worker/graph/model/graph.h"
#include "nn_worker/graph/network_memory.h"
#include "nn_worker/operation/optimizer_rule.h"
#include "proto/model.pb.h"

namespace satrap {

// Values [begin, begin + size) of the flat buffer, and the rule for them.
struct ParameterRange {
  int64_t begin = 0;
  int64_t size = 0;
  OptimizerRule rule;
};

// The ranges of all parameters that are not frozen, in order. Neighbours with equal settings are
// one range, which includes the gap between them. `rule` is that of parameters to which no settings
// apply. INVALID_ARGUMENT, naming the pattern and all parameters, if a pattern matches none.
absl::StatusOr<std::vector<ParameterRange>> MakeParameterRanges(const FlatLayout& parameters,
                                                                const DenseOptimizerConfig& config,
                                                                const OptimizerRule& rule);

// Returns the error that MakeParameterRanges would return, without running the job.
absl::Status CheckParameterPatterns(const Graph& graph, const DenseOptimizerConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_PARAMETER_RANGES_H_
