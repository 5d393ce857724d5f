// A rank's global steps: requests the parts of an epoch, joins a step with each part, and then
// pushes or acknowledges the part, until all ranks are idle in the same step (rank_engine.h has the
// rules).
//
// Every rank gets the same result of each step. So all ranks agree on the count of steps, on what
// is due, and on the step in which all are idle.
//
// Used on one serial executor. Nothing is owned. Everything that this object uses must outlive it,
// and it must outlive the callbacks of its calls.

#ifndef SATRAP_NN_WORKER_RANK_TRAINING_STEPS_H_
#define SATRAP_NN_WORKER_RANK_TRAINING_STEPS_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/types/optional.h"
#include "common/role/kill_points.h"
#include "common/thread/executor.h"
#include "nn_worker/rank/embedding_worker_client.h"
#include "nn_worker/rank/failure_latch.h"
#include "nn_worker/rank/part_pipeline.h"
#include "nn_worker/rank/rank_cuts.h"
#include "nn_worker/rank/rank_observer.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/run_record.h"
#include "nn_worker/rank/staleness_permit.h"
#include "nn_worker/rank/step_trainer.h"
#include "nn_worker/rank/validation_clock.h"

namespace satrap {

class TrainingSteps {
 public:
  struct Peers {
    int num_workers = 0;
    EmbeddingWorkerClient* client = nullptr;
    StepTrainer* trainer = nullptr;
    RankObserver* observer = nullptr;
    FailureLatch* failure = nullptr;
    RunRecord* record = nullptr;        // counts the steps
    RankCuts* cuts = nullptr;           // records what was released and decided
    KillPoints* kill_points = nullptr;  // may be null
  };
  // The reasons, other than a cut (RankCuts::due), for which all ranks have become idle.
  struct Idle {
    bool evaluate = false;   // a validation is due, by steps or by rank 0's clock
    bool end = false;        // training is to end
    bool epoch_end = false;  // nothing was decided: no rank has a part of the epoch left
  };
  // Called when no part, push or Lookup of the train stream is in flight.
  using OnIdle = std::function<void(const Idle&)>;

  TrainingSteps(const RankOptions& options, Executor* executor, const Peers& peers, OnIdle on_idle);

  // BeginEpoch trains an epoch, and Resume continues it after a stop. The first epoch begins at the
  // position in the options. REQUIRES: all ranks are idle
  void BeginEpoch(uint32_t epoch);
  void Resume();

  // Call when a validation has ended: starts the clock of the next one. REQUIRES: all ranks are
  // idle
  void OnValidated();

  // Requests that training end.
  void RequestStop() { stop_requested_ = true; }

  uint32_t epoch() const { return epoch_; }
  // Sets epoch and lanes, which say where the order of parts continues. REQUIRES: idle
  void FillPosition(RunPosition* position) const;

 private:
  // What must be known about a part at the end of its step.
  struct Joined {
    uint64_t entry = 0;
    int worker = 0;
    int staleness = 0;
    uint64_t handle = 0;
    uint32_t epoch = 0;
    RankCuts::Provenance provenance;
  };
  // The part of the next step. The trainer prepares it while a step runs.
  struct Next {
    Joined part;
    std::unique_ptr<PreparedPart> prepared;
  };

  void OnPipelineChanged();
  void PrepareNext();
  void MaybeJoin();
  void JoinWithoutPartWhenDue();
  int64_t IdleStepUs() const;
  void Join(bool idle);
  void OnStepDone(StepResult result);
  void CountStep(const StepResult& result);
  void FailIfTooManyAreSkipped();
  void EndJoinedPart(StepResult* result, uint64_t step);
  void EndClippedStep(const PushGradientsAnswerHeader& answer, std::function<void()> ended);
  void OnReleased(uint64_t entry, uint32_t epoch, const RankCuts::Provenance& provenance);
  void OnAllIdle();

  const RankOptions options_;
  Executor* const executor_;
  const Peers peers_;
  const OnIdle on_idle_;

  ValidationClock validation_clock_;
  StalenessPermits permits_;
  uint32_t epoch_;
  bool epoch_ended_ = false;
  std::unique_ptr<PartPipeline> pipeline_;  // of the current epoch
  bool training_ = false;
  bool joining_ = false;
  absl::optional<Joined> joined_;  // the part of the running step
  absl::optional<Next> next_;
  absl::optional<int64_t> timer_us_;  // when the earliest timer of MaybeJoin fires
  int steps_without_samples_ = 0;     // in a row
  bool stop_requested_ = false;
  Idle decided_;  // what to do once all ranks are idle
  int64_t training_since_us_ = 0;
  int64_t last_step_end_us_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TRAINING_STEPS_H_
