// Initial values of dense parameters. They depend only on (seed, parameter name, element), so every
// rank makes the same values, and adding a layer does not change the values of the others.

#ifndef SATRAP_NN_WORKER_GRAPH_INITIAL_VALUES_H_
#define SATRAP_NN_WORKER_GRAPH_INITIAL_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

// Returns rows * cols values. `name` is the parameter's full name in the network, such as
// "deep/linear_0.weight".
std::vector<float> InitialValues(uint64_t seed, absl::string_view name, const ParameterSpec& spec);

// The seed of the random numbers that a layer draws while it runs (dropout).
uint64_t LayerSeed(uint64_t seed, absl::string_view layer_name);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_INITIAL_VALUES_H_
