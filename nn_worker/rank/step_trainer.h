// A StepTrainer is what a RankEngine knows of the dense network: it takes parts and gives numbers.
// The engine holds the protocol, the trainer the arithmetic; neither knows the other's types.
//
// Implementations: NetworkTrainer (network_trainer.h), the simulation's oracle-checked one.
//
// Calls come from the engine's serial executor, one at a time: the next comes after the last one's
// `done`. A call does not block the caller; `done` runs exactly once, on any thread, possibly
// before the call returns. The calls marked collective are made by every rank in the same order,
// and end only when every rank has made them. A status that is not OK ends the run.

#ifndef SATRAP_NN_WORKER_RANK_STEP_TRAINER_H_
#define SATRAP_NN_WORKER_RANK_STEP_TRAINER_H_

#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/buffer.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"

namespace satrap {

// An answer to NextBatch with result PART, untouched.
struct PartInput {
  NextBatchAnswerHeader header;
  Buffer payload;
};

// The sums over a part's samples, as PushGradients carries them: `header` has dtype, tables and
// features with their sections in `payload`; the engine fills in the rest.
struct PartGradients {
  PushGradientsHeader header;
  Buffer payload;
};

// What one rank says in a step's allreduce besides its gradients.
struct StepFlags {
  bool idle = false;  // nothing to train, and nothing will come until a stop or the epoch's end
  bool stop = false;  // asks for an end of training
};

// What the allreduce says to every rank alike, except for `gradients`.
struct StepResult {
  uint64_t samples = 0;  // over all ranks
  float weight = 0;      // sum of sample weights over all ranks; 0: the step does not count
  double loss = 0;       // sum of weighted losses over all ranks
  // StepNormalizer of the step: what all gradients, dense and embedding, are divided by. Not set
  // if the step does not count.
  float normalizer = 0;
  int idle_ranks = 0;
  bool finite = true;  // dense and embedding gradients of all ranks
  bool stop = false;   // some rank asks for it
  float learning_rate_factor = 1;
  PartGradients gradients;  // of this rank's part; empty without one, or if not finite
};

class StepTrainer {
 public:
  virtual ~StepTrainer() = default;

  // Collective. Trains step `step` (from 0): forward and backward of this rank's part, one
  // allreduce, and one dense optimizer step if the global weight is positive and everything is
  // finite. Without a part the rank joins with an empty batch.
  virtual void JoinStep(uint64_t step, absl::optional<PartInput> part, StepFlags flags,
                        absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) = 0;

  // Adds a part of an evaluation pass to the pass's metrics. Not collective.
  virtual void Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) = 0;

  // Collective. Ends a pass: the metrics of all ranks' parts scored since the last call, the same
  // bits on every rank.
  virtual void MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) = 0;

  // Saves tables and network as the best model, that of `step` steps. `done` runs when every
  // embedding PS has answered and the model is committed. Only rank 0's is called; it joins no
  // collective until then, so no row changes meanwhile.
  virtual void SaveModel(uint64_t step, const MetricValues& valid,
                         absl::AnyInvocable<void(absl::Status)> done) = 0;

  // Collective. Brings tables and network back to what SaveModel saved last.
  virtual void RestoreModel(absl::AnyInvocable<void(absl::Status)> done) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_STEP_TRAINER_H_
