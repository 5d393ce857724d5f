// The protocol of one NN worker, without the network: requests parts from the embedding workers,
// joins the global steps, pushes gradients, and takes part in evaluations and cuts until the run is
// over. It begins at the position of a cut (RankOptions.position), or from nothing.
// docs/consistency.md is the contract.
//
// Training. Every JoinStep of a StepTrainer reports the same sums to all ranks. A step whose global
// weight is 0 does not count: its parts are acknowledged instead of pushed, and the next step has
// the same number. Every decision depends only on values that a step reports to all ranks alike, so
// all ranks make it in the same step and need no barrier:
//   - a stop is decided at max_steps, at a step after which a validation is due, when a rank has
//     raised its stop flag, or when rank 0 has raised its flag for a cut or for a validation that
//     is due by the clock. Ranks then request no more parts but train those they hold, so at most
//     ranks * max_staleness further steps count (none in ordered mode);
//   - a rank is idle when it makes no more requests (a stop is decided, or its epoch has no parts
//     left) and its pipeline is empty. When all ranks are idle in the same allreduce, the stop is
//     reached, or the end of the epoch if no stop was decided.
// A rank without a part joins steps without one. In both modes it does so as soon as it is idle. In
// unordered mode it also does so when no part has come for idle_step_ms since the last step, or for
// up to eight times as long while no data comes to any rank.
//
// Evaluation. Each rank requests parts of the pass, scores and acknowledges them. Merging the
// metrics is the barrier at its end (evaluation_passes.h); every rank gets the same metrics and
// judges them alike (run_record.h).
//
// Cuts. When all ranks are idle nothing is in flight, so the tables are a function of what was
// released: pushed and answered, or acknowledged in a step of weight 0. At such a point a
// validation comes first, if one is due. Then comes a cut, if rank 0 has asked for one (by clock,
// by steps, on a wish), if the validation is a new best, or if training ends. Every rank hands over
// the ledger of what it has released. Training continues when all embedding PSs have marked. Three
// kinds of cut are an exception: that of a new best, the last, and a wished one. Ranks wait until
// such a cut has ended, and begin it again if it is abandoned. If a wish asks ranks to leave with
// its cut, they do nothing more after it and never finish (rank_cuts.h). The test set is scored
// with the best cut, or with the last one, and no cut comes after that.
//
// The engine runs on one serial executor; its public methods are thread-safe. The first error goes
// to the FailureSink, and the engine does nothing more. Everything passed to the constructor must
// outlive the engine, and the engine must outlive the callbacks of its channels and its trainer.

#ifndef SATRAP_NN_WORKER_RANK_RANK_ENGINE_H_
#define SATRAP_NN_WORKER_RANK_RANK_ENGINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/role/kill_points.h"
#include "common/rpc/rpc.h"
#include "common/thread/executor.h"
#include "nn_worker/rank/embedding_worker_client.h"
#include "nn_worker/rank/evaluation_passes.h"
#include "nn_worker/rank/failure_latch.h"
#include "nn_worker/rank/rank_cuts.h"
#include "nn_worker/rank/rank_observer.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/run_record.h"
#include "nn_worker/rank/step_trainer.h"
#include "nn_worker/rank/training_steps.h"

namespace satrap {

class RankEngine {
 public:
  using FailureSink = FailureLatch::Sink;
  // Receives the figures of the run, except those of the tables and the counts of the ledger, which
  // only the process knows. model_dir is a name in RUN/checkpoints; empty if the model is the cut
  // that the generation began from. Not called if the ranks leave with a cut.
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

  // Asks for a cut that begins after this call. If the wish says so, the ranks leave with that cut.
  // Wishes may be repeated or come late; only the newest counts. Ranks other than 0 ignore wishes.
  void RequestCut(const CutWish& wish);

 private:
  enum class Next { kResume, kNextEpoch, kFinish };  // how training goes on after all are idle

  void SetPhase(absl::string_view phase);

  // These functions check and make positions: where the run begins, and where it continues after a
  // cut.
  absl::Status CheckPosition() const;
  void Begin();
  RunPosition PositionAfter(const std::string& cut);
  void FillFrozenSteps(RunPosition* position) const;

  // The stages that follow when all ranks are idle, in this order.
  void OnIdle(const TrainingSteps::Idle& idle);
  void BeginPass(Stream stream, uint32_t pass, EvaluationPasses::Done done);
  void OnValidated(const MetricValues& values);
  void CutIfDue();
  void GoOn();
  void FinishTraining();
  void Test();
  void OnTested(const MetricValues& values);
  RunResult ResultOfTraining() const;

  const RankOptions options_;
  Executor* const executor_;
  StepTrainer* const trainer_;
  RankObserver* const observer_;
  const FinishedSink on_finished_;
  KillPoints* const kill_points_;

  // Everything below is used on the executor only.
  FailureLatch failure_;
  EmbeddingWorkerClient client_;
  RunRecord record_;
  RankCuts cuts_;
  TrainingSteps steps_;
  EvaluationPasses passes_;
  std::string phase_;
  Next next_ = Next::kResume;
  uint32_t next_pass_ = 0;  // of VALID_STREAM
  bool new_best_ = false;   // by the validation just before
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_RANK_ENGINE_H_
