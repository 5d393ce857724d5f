#include "nn_worker/graph/network_values.h"

#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/graph/initial_values.h"

namespace satrap {

absl::Status NetworkValues::Allocate(const Graph& graph, const NetworkOptions& options) {
  backend = options.backend;
  parameter_layout = LayoutParameters(graph, backend);
  state_layout = LayoutStates(graph);
  ASSIGN_OR_RETURN(parameters, AllocateTensor(backend, DType::kF32, 1, parameter_layout.size));
  ASSIGN_OR_RETURN(copies, AllocateCopies(parameter_layout, options.dtype, backend));
  ASSIGN_OR_RETURN(states, AllocateTensor(backend, DType::kF32, 1, state_layout.size));
  if (options.optimizer.has_averaged_weights()) {
    const float decay = options.optimizer.averaged_weights().decay();
    ASSIGN_OR_RETURN(averages, AveragedWeights::Create(decay, parameters, backend));
  }
  return absl::OkStatus();
}

void NetworkValues::SetInitialValues(uint64_t seed) {
  for (const FlatArray& array : parameter_layout.arrays) {
    CopyIn(backend, InitialValues(seed, array.name, array.spec), ViewOf(array, parameters));
  }
  for (const FlatArray& array : state_layout.arrays) {
    CopyIn(backend, InitialValues(seed, array.name, array.spec), ViewOf(array, states));
  }
  if (averages.has_value()) averages->Reset();
  RefreshCopies();
}

void NetworkValues::RefreshCopies() {
  for (size_t i = 0; i < copies.size(); ++i) {
    if (copies[i].empty()) continue;
    backend->Copy(ViewOf(parameter_layout.arrays[i], parameters), copies[i], /*add=*/false);
  }
}

std::vector<KeptArray> NetworkValues::Kept(bool with_averages) const {
  std::vector<KeptArray> kept;
  AppendKept(parameter_layout, parameters, "", &kept);
  AppendKept(state_layout, states, "", &kept);
  if (with_averages) {
    AppendKept(parameter_layout, averages->averages(), kAverageSuffix, &kept);
  }
  return kept;
}

}  // namespace satrap
