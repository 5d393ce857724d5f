// The second allreduce of a step: sums samples, weight, loss, labels and flags over all ranks. A
// flag that any rank raises counts for all ranks (docs/consistency.md, "A step").
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_TRAINER_STEP_SUMS_H_
#define SATRAP_NN_WORKER_TRAINER_STEP_SUMS_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/graph/step/loss_scale.h"
#include "nn_worker/rank/step_trainer.h"
#include "nn_worker/trainer/task_batch.h"

namespace satrap {

// What a rank knows of its part of a step. Counts travel as f32, which is exact up to 2^24.
struct RankSums {
  size_t samples = 0;
  LossSums loss;
  StepFlags flags;
  LabelCount labels;
  bool finite = true;  // this rank's gradients of embeddings, and the summed dense gradient
  bool large = false;  // one of these is beyond kLargeGradient
};

struct SummedStep {
  StepResult result;  // all that follows from the sums, including the normalizer
  StepTotals totals;  // as the network takes them
};

// Every rank calls this in every step. Fails only if the collective fails.
absl::StatusOr<SummedStep> SumStepOfRanks(const RankSums& own, int64_t global_batch_size,
                                          Collective* collective);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_STEP_SUMS_H_
