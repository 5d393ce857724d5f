// The protocol of one NN worker, without the network: requests parts from the embedding workers,
// joins the global steps, pushes gradients, and takes part in evaluations and cuts until the run is
// over. It begins where a cut says (RankOptions.position), or from nothing.
// docs/consistency.md is the contract.
//
// Training. Every JoinStep of a StepTrainer is one allreduce over all ranks. A step whose global
// weight is 0 does not count: its parts are acknowledged instead of pushed, and the next step has
// the same number. Every decision is a function of what an allreduce told all ranks alike, so all
// ranks make it in the same step and need no barrier:
//   - a stop is decided when a number of steps is reached (a validation is due, or max_steps), a
//     rank raised its stop flag, or rank 0 raised the cut flag. Ranks then request no more parts but
//     train those they hold, so at most ranks * max_staleness further steps count (none in ordered
//     mode);
//   - a rank is idle when it makes no more requests (a stop is decided, or its epoch has no parts
//     left) and its pipeline is empty. When all ranks are idle in the same allreduce, the stop is
//     reached, or the end of the epoch if no stop was decided.
// A rank without a part joins steps without one: as soon as it is idle in both modes, and in
// unordered mode also when no part has come for idle_step_ms since the last step.
//
// Evaluation. Each rank requests parts of the pass, scores and acknowledges them. Merging the
// metrics is the barrier at its end; every rank gets the same ones and judges them alike
// (best_model.h).
//
// Cuts. When all ranks are idle nothing is in flight, so the tables are a function of what was
// released: pushed and answered, or acknowledged in a step of weight 0. There a validation comes
// first, if one is due, and then the cut: one that rank 0 asked for (by clock, by steps, on a wish),
// one of a new best, or the last. Every rank hands over the ledger of what it has released. Training
// goes on when all embedding PSs have marked; a cut of a new best, the last and a wished one are
// waited for, and begun again if they are abandoned. After a cut to leave, ranks do nothing more and
// never finish. The test set is scored with the best cut, or the last, and no cut comes after it.
//
// The engine runs on one serial executor; its public methods are thread-safe. The first error goes
// to the FailureSink, and the engine does nothing more. Everything passed to the constructor must
// outlive the engine, and the engine must outlive the callbacks of its channels and its trainer.

#ifndef SATRAP_NN_WORKER_RANK_RANK_ENGINE_H_
#define SATRAP_NN_WORKER_RANK_RANK_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/checkpoint/ledger.h"
#include "common/role/kill_points.h"
#include "common/rpc/rpc.h"
#include "common/thread/executor.h"
#include "nn_worker/rank/best_model.h"
#include "nn_worker/rank/cut_plan.h"
#include "nn_worker/rank/cut_schedule.h"
#include "nn_worker/rank/embedding_worker_client.h"
#include "nn_worker/rank/part_pipeline.h"
#include "nn_worker/rank/rank_observer.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/staleness_permit.h"
#include "nn_worker/rank/step_trainer.h"

namespace satrap {

class RankEngine {
 public:
  using FailureSink = std::function<void(absl::Status)>;
  // Gets the figures of the run, except those that only the process knows (tables, the ledger's
  // counts). model_dir is a name in RUN/checkpoints; empty if the model is the cut that the
  // generation began from. It is not called after a cut to leave.
  using FinishedSink = std::function<void(const RunResult&)>;

  // `executor` runs one task at a time. `workers` are the embedding workers by index. `kill_points`
  // may be null.
  RankEngine(const RankOptions& options, Executor* executor, std::vector<rpc::Channel*> workers,
             StepTrainer* trainer, RankObserver* observer, FailureSink on_failure,
             FinishedSink on_finished, KillPoints* kill_points = nullptr);
  ~RankEngine();
  RankEngine(const RankEngine&) = delete;
  RankEngine& operator=(const RankEngine&) = delete;

  // Begins the run. REQUIRES: called once
  void Start();

  // Ends training early, at a step that all ranks agree on. Validation and test still run.
  void RequestStop();

  // Asks for a cut that begins from now on, and to leave with it if the wish says so. Of wishes that
  // are repeated or come late only the newest counts. Other ranks than 0 ignore it.
  void RequestCut(const CutWish& wish);

 private:
  struct Decided {  // what to do once all ranks are idle
    bool evaluate = false;
    bool cut = false;
    bool end = false;
    bool any() const { return evaluate || cut || end; }
  };
  enum class Next { kResume, kNextEpoch, kFinish };  // how training goes on after that
  using Provenance = google::protobuf::RepeatedPtrField<ProvenanceRange>;

  // A callback that runs `then` on the executor, or fails the run if the result is an error.
  absl::AnyInvocable<void(absl::Status)> WhenOk(std::function<void()> then);
  template <typename T>
  absl::AnyInvocable<void(absl::StatusOr<T>)> WhenGood(void (RankEngine::*then)(T));
  void Fail(absl::Status status);
  void SetPhase(absl::string_view phase);
  PartPipeline::RequestFunction MakeRequestFunction();

  // Where the run begins.
  absl::Status CheckPosition() const;
  void Begin();

  // Training.
  void BeginEpoch(uint32_t epoch);
  void ResumeTraining();
  void OnPipelineChanged();
  void MaybeJoin();
  void JoinWithoutPartWhenDue();
  void Join(absl::optional<PartPipeline::TakenPart> part, bool idle);
  void OnStepDone(StepResult result);
  void CountStep(StepResult* result);
  void CountSkippedStep();
  void EndJoinedPart(StepResult* result, uint64_t step);
  void OnReleased(uint64_t slot, uint32_t epoch, const Provenance& provenance);
  void OnAllIdle();
  // Evaluation.
  void BeginPass(Stream stream, uint32_t pass);
  void MaybeScore();
  void OnMerged(MetricValues values);
  void OnValidated(const MetricValues& values);
  // Cuts.
  RunPosition Position() const;
  void CutIfDue();
  void BeginCut();
  void OnCutMarked(CutMarked marked);
  void OnCutEnded(uint64_t number, const CutOutcome& outcome);
  void OnCutAwaited(bool committed);
  void GoOn();
  // The end.
  void FinishTraining();
  void Finish();

  const RankOptions options_;
  Executor* const executor_;
  const int num_workers_;
  StepTrainer* const trainer_;
  RankObserver* const observer_;
  const FailureSink on_failure_;
  const FinishedSink on_finished_;
  KillPoints* const kill_points_;

  // Everything below is used on the executor only.
  EmbeddingWorkerClient client_;
  StalenessPermits permits_;
  StalenessPermits evaluation_permits_;
  bool failed_ = false;
  bool training_ = false;
  std::string phase_;
  uint32_t epoch_;
  bool epoch_ended_ = false;
  uint64_t step_;  // counted so far, and so the number of the next one
  uint64_t skipped_in_a_row_;
  std::unique_ptr<PartPipeline> pipeline_;  // of the current epoch
  bool joining_ = false;
  absl::optional<PartPipeline::TakenPart> joined_;  // the part of the running step
  uint64_t joined_handle_ = 0;
  uint32_t joined_epoch_ = 0;
  Provenance joined_provenance_;
  Ledger released_;  // since the last cut began
  int64_t last_step_end_us_ = 0;
  bool timer_set_ = false;
  bool stop_requested_ = false;
  Decided decided_;

  std::unique_ptr<PartPipeline> pass_pipeline_;  // of the current evaluation pass
  Stream pass_stream_ = VALID_STREAM;
  uint32_t next_pass_ = 0;  // of VALID_STREAM
  bool scoring_ = false;
  bool merging_ = false;
  absl::optional<uint64_t> validated_step_;
  Next next_ = Next::kResume;

  BestModel best_;
  absl::optional<BestValidation> best_validation_;

  // The cut that is due or was begun last.
  bool cut_due_ = false;
  bool new_best_ = false;  // of the validation just before
  uint64_t cuts_begun_ = 0;
  std::string last_cut_;  // its name
  bool leaving_ = false;
  int64_t cut_decided_us_ = 0;
  int64_t until_idle_us_ = 0;             // from the decision
  absl::optional<int64_t> cut_begun_us_;  // the first time, if it was begun again
  CutSchedule schedule_;                  // of rank 0

  RunResult result_;
  int64_t training_since_us_ = 0;
  int64_t trained_us_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_RANK_ENGINE_H_
