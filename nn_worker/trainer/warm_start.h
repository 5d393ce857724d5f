// Begins a run with values that it takes from another run's model (WarmStartConfig in
// proto/job.proto).

#ifndef SATRAP_NN_WORKER_TRAINER_WARM_START_H_
#define SATRAP_NN_WORKER_TRAINER_WARM_START_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn_worker/checkpoint/ps_control_client.h"
#include "nn_worker/checkpoint/saved_model.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/graph/network.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// Names of tables first, then of dense parameters and running statistics.
struct WarmStartReport {
  std::vector<std::string> taken;
  std::vector<std::string> fresh;    // named or all, but the model has none
  std::vector<std::string> ignored;  // in the model, but not in the job
  bool has_state = false;            // of the dense optimizer
  WarmStartResult result;            // the same with rows and features; rank 0 only
};

// Collective, blocking; before the first step. `model` is what rank 0 has read. Rank 0 sends it to
// the other ranks, which may not see its disk; their `model` is ignored. If the model's cut
// vanishes meanwhile, *model becomes the model that is taken instead (LoadOrLookAgain). Rank 0 uses
// `embedding_ps` to make the embedding PSs load their tables; it is null on the other ranks.
// FAILED_PRECONDITION if nothing of the model is taken, or what is taken has another shape;
// INVALID_ARGUMENT for a pattern that matches nothing.
absl::StatusOr<WarmStartReport> WarmStart(StartModel* model, const JobConfig& job, Network* network,
                                          Collective* collective, PsControlClient* embedding_ps);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_WARM_START_H_
