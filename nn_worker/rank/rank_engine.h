// The protocol of one NN worker, without the network: requests parts from the embedding workers,
// joins the global steps, pushes gradients, and takes part in evaluations until the run is over.
// docs/consistency.md is the contract.
//
// Training. Every JoinStep of a StepTrainer is one allreduce over all ranks. A step whose global
// weight is 0 does not count: its parts are acknowledged instead of pushed, and the next step has
// the same number. Every decision is a function of what an allreduce told all ranks alike, so all
// ranks make it in the same step and need no barrier:
//   - a stop is decided when a number of steps is reached (a validation is due, or max_steps) or a
//     rank raised its stop flag. Ranks then request no more parts but train those they hold, so at
//     most ranks * max_staleness further steps count (none in ordered mode);
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
// The engine runs on one serial executor; its public methods are thread-safe. The first error goes
// to the FailureSink, and the engine does nothing more. Everything passed to the constructor must
// outlive the engine, and the engine must outlive the callbacks of its channels and its trainer.

#ifndef SATRAP_NN_WORKER_RANK_RANK_ENGINE_H_
#define SATRAP_NN_WORKER_RANK_RANK_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/rpc.h"
#include "common/thread/executor.h"
#include "nn_worker/rank/best_model.h"
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
  // Gets the figures of the run, except those that only the process knows (tables, model_dir).
  using FinishedSink = std::function<void(const RunResult&)>;

  // `executor` runs one task at a time. `workers` are the embedding workers by index.
  RankEngine(const RankOptions& options, Executor* executor, std::vector<rpc::Channel*> workers,
             StepTrainer* trainer, RankObserver* observer, FailureSink on_failure,
             FinishedSink on_finished);
  ~RankEngine();
  RankEngine(const RankEngine&) = delete;
  RankEngine& operator=(const RankEngine&) = delete;

  // Begins the run. REQUIRES: called once
  void Start();

  // Ends training early, at a step that all ranks agree on. Validation and test still run.
  void RequestStop();

 private:
  struct Decided {  // what to do once all ranks are idle
    bool evaluate = false;
    bool end = false;
    bool any() const { return evaluate || end; }
  };
  enum class Next { kResume, kNextEpoch, kFinish };  // how training goes on after that

  // A callback that runs `then` on the executor, or fails the run if the result is an error.
  absl::AnyInvocable<void(absl::Status)> WhenOk(std::function<void()> then);
  template <typename T>
  absl::AnyInvocable<void(absl::StatusOr<T>)> WhenGood(void (RankEngine::*then)(T));
  void Fail(absl::Status status);
  PartPipeline::RequestFunction MakeRequestFunction();

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
  void OnAllIdle();
  // Evaluation.
  void BeginPass(Stream stream, uint32_t pass);
  void MaybeScore();
  void OnMerged(MetricValues values);
  void OnValidated(const MetricValues& values);
  void AfterValidation();
  // The end.
  void Save(std::function<void()> then);
  void FinishTraining();
  void BeginTest();
  void Finish();

  const RankOptions options_;
  Executor* const executor_;
  const int num_workers_;
  StepTrainer* const trainer_;
  RankObserver* const observer_;
  const FailureSink on_failure_;
  const FinishedSink on_finished_;

  // Everything below is used on the executor only.
  EmbeddingWorkerClient client_;
  StalenessPermits permits_;
  StalenessPermits evaluation_permits_;
  bool failed_ = false;
  bool training_ = false;
  uint32_t epoch_ = 0;
  uint64_t step_ = 0;  // counted so far, and so the number of the next one
  uint64_t skipped_in_a_row_ = 0;
  std::unique_ptr<PartPipeline> pipeline_;  // of the current epoch
  bool joining_ = false;
  absl::optional<PartPipeline::TakenPart> joined_;  // the part of the running step
  uint64_t joined_handle_ = 0;
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
  absl::optional<uint64_t> saved_step_;
  RunResult result_;
  int64_t training_since_us_ = 0;
  int64_t trained_us_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_RANK_ENGINE_H_
