// Saves and loads the values and the training state of a Network, and starts them from a model of
// another run. The methods of Network have further details and the errors.
//
// Thread-compatible: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_GRAPH_NETWORK_SAVING_H_
#define SATRAP_NN_WORKER_GRAPH_NETWORK_SAVING_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn_worker/graph/network_options.h"
#include "nn_worker/graph/network_training.h"
#include "nn_worker/graph/network_values.h"
#include "nn_worker/graph/saved/dense_checkpoint.h"
#include "nn_worker/graph/saved/dense_start.h"

namespace satrap {

// The parts of one network that are saved. Nothing is owned.
struct SavedParts {
  const NetworkOptions& options;
  NetworkValues* values;
  NetworkTraining* training;
};

std::string SaveParts(const SavedParts& parts);
absl::Status LoadParts(absl::string_view bytes, LoadScope scope, const SavedParts& parts);
absl::StatusOr<TakenOfModel> StartPartsFrom(absl::string_view bytes, const WarmStartConfig& config,
                                            uint64_t model_step, const SavedParts& parts);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_NETWORK_SAVING_H_
