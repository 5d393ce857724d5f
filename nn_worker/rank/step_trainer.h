// The dense network as a RankEngine sees it: parts go in, numbers come out. The engine implements
// the protocol, and the trainer does the arithmetic; neither knows the other's types.
//
// Implementations: NetworkTrainer (nn_worker/trainer/network_trainer.h) and those of FakeCluster
// and the simulation.
//
// Methods are called on the engine's serial executor, one at a time: the next call comes after the
// `done` of the previous one has run. Only Prepare may also be called earlier. A call does not
// block; its `done` runs exactly once, on any thread, possibly before the call returns. Methods
// marked collective are called by every rank in the same order, and complete only when every rank
// has called them. A status that is not OK ends the run.

#ifndef SATRAP_NN_WORKER_RANK_STEP_TRAINER_H_
#define SATRAP_NN_WORKER_RANK_STEP_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "nn_worker/rank/part_messages.h"
#include "nn_worker/rank/schedule/cut_plan.h"
#include "proto/control.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// If the magnitude of a gradient (as it is sent, without the loss scale) is above this limit, the
// gradient is finite, but so large that its square dominates an optimizer's state for good. Steps
// with such a gradient are counted.
inline constexpr float kLargeGradient = 1e15f;

// What one rank contributes to a step in addition to its gradients, and the learning rates' factor,
// which is the same on all ranks.
struct StepFlags {
  bool idle = false;        // it has no part, and gets none before a stop or the epoch's end
  bool stop = false;        // it wants training to end
  bool cut = false;         // a cut is due: rank 0 only
  bool validation = false;  // one is due by the clock: rank 0 only
  // Multiplies all learning rates of the step, on top of their schedules; the same on every rank.
  float learning_rate_factor = 1;
};

// The result of a step, from the sums over all ranks. It is the same on every rank, except for
// `gradients`.
struct StepResult {
  uint64_t samples = 0;  // over all ranks
  float weight = 0;      // sum of sample weights over all ranks; 0: the step does not count
  double loss = 0;       // sum of weighted losses over all ranks
  // `labelled` is the number of samples, over all ranks, that have a weight and a label of two
  // classes; `positives` is the sum of these labels.
  uint64_t labelled = 0;
  double positives = 0;
  // The StepNormalizer of the step: all gradients, dense and embedding, are divided by it. Not set
  // if the step does not count.
  float normalizer = 0;
  // Set with gradient_clip_norm, if the step counts and is finite: the sum of squares of the dense
  // gradient. In this case the network has not made the step yet; EndStep makes it.
  absl::optional<double> dense_squares;
  int idle_ranks = 0;
  bool finite = true;              // the dense and embedding gradients of all ranks are finite
  bool large = false;              // one of these is beyond kLargeGradient; only if finite
  bool stop = false;               // a rank wants training to end
  bool cut = false;                // a cut is due
  bool validation = false;         // one is due by the clock
  float learning_rate_factor = 1;  // the one that all flags have
  absl::optional<LossScaleState> loss_scale;  // for the next step; not set if the job has none
  PartGradients gradients;  // of this rank's part; empty without one, or if not finite
};

// What EndStep has done: the same on every rank.
struct StepEnd {
  float clip_factor = 1;
  absl::optional<LossScaleState> loss_scale;  // replaces that of StepResult
};

// A part that a trainer prepares. Only this trainer uses the part, which may outlive the trainer.
class PreparedPart {
 public:
  virtual ~PreparedPart() = default;
};

class StepTrainer {
 public:
  // The maximum number of parts that may be prepared while their steps have not ended: the part of
  // the running step, and the next part.
  static constexpr int kPreparedParts = 2;

  virtual ~StepTrainer() = default;

  // Takes a part that a later JoinStep will train, and does in advance all work that needs neither
  // the network nor the other ranks. This work may overlap with the running step, and with anything
  // else that the rank waits for. JoinStep reports errors in the part. Not collective. REQUIRES:
  // parts are joined in the order in which they are prepared; at most kPreparedParts are prepared
  // while their steps have not ended
  virtual std::unique_ptr<PreparedPart> Prepare(PartInput part) = 0;

  // Collective. Trains step `step` (from 0): forward and backward of this rank's part, the
  // reduction over all ranks, and one dense optimizer step if the global weight is positive and
  // everything is finite. `part` may be null: the rank then joins with an empty batch.
  virtual void JoinStep(uint64_t step, std::unique_ptr<PreparedPart> part, StepFlags flags,
                        absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) = 0;

  // Collective. Ends a step whose result has dense_squares: makes one dense optimizer step.
  // `squares` is the sum of squares over all gradients of the step, dense and embedding. All these
  // gradients are multiplied by the ClipFactor of `squares` (common/numeric/clip_factor.h).
  virtual void EndStep(double squares, absl::AnyInvocable<void(absl::StatusOr<StepEnd>)> done) = 0;

  // Adds a part of an evaluation pass to the pass's metrics. Not collective.
  virtual void Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) = 0;

  // Collective. Ends a pass. `done` gets the metrics of all parts that the ranks have scored since
  // the last call, with the same bits on every rank.
  virtual void MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) = 0;

  // Collective. Begins a cut: rank 0 gets what every rank has released, every embedding PS marks
  // its rows, and the dense state is copied. `done` runs when all ranks know that every PS has
  // marked its rows, or that the cut could not begin. The cut is then written while training
  // continues. When the cut has ended, `ended` runs, on rank 0 only: before the `done` of an
  // AwaitCut, but before or after the `done` of this call. If a cut is still being written, the
  // next one begins after it.
  virtual void BeginCut(CutPlan plan, absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done,
                        absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended) = 0;

  // Collective. Waits until the cut that was begun last has ended. `done` gets true if the cut is
  // committed, and false if it was abandoned.
  virtual void AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) = 0;

  // Collective. Restores tables and network from the cut RUN/checkpoints/`cut`, to score with them.
  // No step and no cut follows.
  virtual void RestoreModel(const std::string& cut,
                            absl::AnyInvocable<void(absl::Status)> done) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_STEP_TRAINER_H_
