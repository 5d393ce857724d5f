// Receives the events of a rank: for progress lines, metrics.jsonl and Prometheus. Calls come from
// the engine's serial executor and must be short.

#ifndef SATRAP_NN_WORKER_RANK_RANK_OBSERVER_H_
#define SATRAP_NN_WORKER_RANK_RANK_OBSERVER_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/rpc/payload.h"
#include "nn_worker/rank/schedule/cut_plan.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"

namespace satrap {

// A step that counted, because its global weight was above 0.
struct StepEvent {
  uint32_t epoch = 0;
  uint64_t steps = 0;    // so far, this one included
  uint64_t samples = 0;  // of the step, over all ranks
  double weight = 0;
  double loss = 0;  // sum of weighted losses
  bool finite = true;
  bool large = false;     // it was finite, and had a gradient beyond kLargeGradient
  double loss_scale = 0;  // for the next step; 0: the job has none
  absl::optional<MovingLabelRate> moving_label_rate;  // as far as it is known (label_order.h)
  bool had_part = false;
  int staleness = 0;  // of this rank's part
  // The same values as in this rank's PartGradients (part_messages.h).
  uint64_t gradient_values = 0;
  rpc::WireLosses losses;
};

struct EvaluationEvent {
  Stream stream = VALID_STREAM;
  uint32_t epoch = 0;
  uint64_t steps = 0;  // counted before it
  MetricValues values;
  bool best = false;
  // With evaluation.reduce_on_plateau: the factor on learning rates from now on, whether this
  // validation has lowered it, and how many validations have lowered it so far.
  absl::optional<double> learning_rate_factor;
  bool reduced = false;
  uint32_t reductions = 0;
};

class RankObserver {
 public:
  virtual ~RankObserver() = default;
  // "training", "validating", "testing", "saving" or "leaving". After "leaving" this generation
  // trains no more.
  virtual void OnPhase(absl::string_view phase) = 0;
  virtual void OnStep(const StepEvent& event) = 0;
  // With gradient_clip_norm: the norm of all gradients of a finite step, before they were
  // multiplied by `clip_factor`. Called after OnStep of the same step.
  virtual void OnGradientNorm(double /*norm*/, float /*clip_factor*/) {}
  virtual void OnEvaluation(const EvaluationEvent& event) = 0;
  virtual void OnCutBegun() {}
  // Called when training resumes after a cut. `seconds` is the time since the cut was decided, not
  // counting evaluations. It includes the time in which ranks trained the parts that they held.
  virtual void OnCutPause(double /*seconds*/) {}
  // Called on rank 0 only, when a cut that was begun has ended.
  virtual void OnCutEnded(const CutOutcome& /*outcome*/) {}
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_RANK_OBSERVER_H_
