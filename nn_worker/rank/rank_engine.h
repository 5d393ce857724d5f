// The protocol of one NN worker, without the network: it asks the embedding workers for parts,
// joins the global steps, pushes gradients, and takes part in evaluations, until the run is over.
// docs/consistency.md is the contract; its words are used here.
//
// Training. Every JoinStep of a StepTrainer is one allreduce over all ranks. A step whose global
// weight is 0 does not count: its parts are acknowledged, not pushed, and the next step has the
// same number. All decisions are functions of what an allreduce told every rank alike, so all
// ranks make them in the same step without a barrier:
//   - a stop is decided by the number of steps (a validation is due, max_steps) or by a rank's
//     flag. Ranks then ask no more and train what they hold, so up to ranks * max_staleness - 1
//     more steps may count, one more after a step that did not (none in ordered mode);
//   - a rank is idle when it may not ask (a stop is decided, or nothing is left in its epoch) and
//     its line is empty. When all are idle in one allreduce, the stop is reached, or, if none was
//     decided, the epoch's end.
// A rank with no part joins with none: unordered, after idle_step_ms without a part since the last
// step ended; in both modes at once when it is idle.
//
// Evaluation. Each rank asks for parts of the pass, scores and acknowledges them; the merge of the
// metrics is the barrier. Ranks judge the merged metrics alike (best_model.h).
//
// The engine runs on one serial executor; its public calls are thread-safe. Any error goes to the
// FailureSink, once, after which the engine does nothing more. Everything given to the constructor
// must outlive the engine, and the engine the answers of its channels and of its trainer.

#ifndef SATRAP_NN_WORKER_RANK_RANK_ENGINE_H_
#define SATRAP_NN_WORKER_RANK_RANK_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/executor.h"
#include "common/rpc/rpc.h"
#include "nn_worker/rank/best_model.h"
#include "nn_worker/rank/embedding_worker_client.h"
#include "nn_worker/rank/part_line.h"
#include "nn_worker/rank/rank_observer.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/staleness_permit.h"
#include "nn_worker/rank/step_trainer.h"

namespace satrap {

class RankEngine {
 public:
  using FailureSink = std::function<void(absl::Status)>;
  // Gets the run's figures, without those that only a process knows (tables, model_dir).
  using FinishedSink = std::function<void(const RunResult&)>;

  // `executor` runs one task at a time. `workers` are the embedding workers by index.
  RankEngine(const RankOptions& options, Executor* executor, std::vector<rpc::Channel*> workers,
             StepTrainer* trainer, RankObserver* observer, FailureSink on_failure,
             FinishedSink on_finished);
  RankEngine(const RankEngine&) = delete;
  RankEngine& operator=(const RankEngine&) = delete;
  ~RankEngine();

  // Begins the run. REQUIRES: once
  void Start();

  // Ends training early, at a step that all ranks agree on; validation and test still run.
  void RequestStop();

 private:
  struct Decided {
    bool evaluate = false;
    bool end = false;
    bool any() const { return evaluate || end; }
  };
  enum class Next { kResume, kNextEpoch, kFinish };

  // A callback that runs `then` on the executor if the result is good, and else fails the run.
  absl::AnyInvocable<void(absl::Status)> WhenOk(std::function<void()> then);
  template <typename T>
  absl::AnyInvocable<void(absl::StatusOr<T>)> WhenGood(void (RankEngine::*then)(T));
  void Fail(absl::Status status);
  PartLine::AskFunction MakeAskFunction();

  // Training.
  void BeginEpoch(uint32_t epoch);
  void ResumeTraining();
  void OnLineChanged();
  void MaybeJoin();
  void JoinWithoutPartInTime();
  void Join(absl::optional<PartLine::TakenPart> part, bool idle);
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

  // All below is touched on the executor only.
  EmbeddingWorkerClient client_;
  StalenessPermits permits_;
  StalenessPermits evaluation_permits_;
  bool failed_ = false;

  bool training_ = false;
  uint32_t epoch_ = 0;
  uint64_t step_ = 0;  // counted so far: the number of the next
  uint64_t skipped_in_a_row_ = 0;
  std::unique_ptr<PartLine> line_;
  bool joining_ = false;
  absl::optional<PartLine::TakenPart> joined_;  // the part of the running step
  uint64_t joined_handle_ = 0;
  int64_t last_step_end_us_ = 0;
  bool timer_set_ = false;
  bool stop_requested_ = false;
  Decided decided_;

  std::unique_ptr<PartLine> pass_line_;  // of the running evaluation pass
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
