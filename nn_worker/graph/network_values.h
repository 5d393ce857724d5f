// The values of a Network: its parameters, the values that are derived from them, and the running
// statistics of layers. Each kind lies in one flat buffer (network_memory.h).
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_GRAPH_NETWORK_VALUES_H_
#define SATRAP_NN_WORKER_GRAPH_NETWORK_VALUES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/graph/model/graph.h"
#include "nn_worker/graph/network_checkpoint.h"
#include "nn_worker/graph/network_memory.h"
#include "nn_worker/graph/network_options.h"
#include "nn_worker/graph/step/averaged_weights.h"

namespace satrap {

struct NetworkValues {
  // RESOURCE_EXHAUSTED. All values are 0.
  absl::Status Allocate(const Graph& graph, const NetworkOptions& options);
  void SetInitialValues(uint64_t seed);
  // Makes new rounded copies of the parameters. Call after every change of the parameters, except
  // after a step, which rounds them itself.
  void RefreshCopies();
  // Makes layers read the averages (true) or the trained parameters (false). All other code that
  // reads or writes parameters must call ShowAverages(false) first. If there are no averages, the
  // call does nothing.
  void ShowAverages(bool show) {
    if (averages.has_value() && averages->Show(show)) RefreshCopies();
  }
  // The arrays that are saved and loaded.
  std::vector<KeptArray> Kept(bool with_averages) const;

  Backend* backend = nullptr;
  FlatLayout parameter_layout;
  FlatLayout state_layout;
  Tensor parameters, states;   // (1, size)
  std::vector<Tensor> copies;  // in 16 bits, by array of parameter_layout; empty: has none
  absl::optional<AveragedWeights> averages;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_NETWORK_VALUES_H_
