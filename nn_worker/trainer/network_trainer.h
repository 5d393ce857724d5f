// The StepTrainer of a real NN worker: embeddings in, forward and backward through the dense
// network, the reduction over the ranks, gradients out.
//
// A step costs two allreduces, besides those of layers (batch norm): one of the dense gradient,
// beside which the gradients of embeddings are made, and then a small one of what decides the step.
// The second comes last because it says whether those gradients are finite as they will be sent.
//
// Threads. A step runs on one thread of this object. That thread blocks in collectives, while
// embedding PSs mark or load their rows, and in AwaitCut, and runs the `done` callbacks. A part is
// prepared on a second thread while a step runs, and otherwise by the first one when it joins: a
// part that is joined at once costs no change of threads. On a busy CPU, preparing during a step
// slows that step by as much as it saves in the next one; it gains time where a core is free, or
// the step waits for other ranks. The destructor waits for a running call: abort the collective
// first if ranks may be missing.

#ifndef SATRAP_NN_WORKER_TRAINER_NETWORK_TRAINER_H_
#define SATRAP_NN_WORKER_TRAINER_NETWORK_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/thread/fork_join_pool.h"
#include "nn_worker/checkpoint/cut_engine.h"
#include "nn_worker/checkpoint/saved_model.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/metrics/score_windows.h"
#include "nn_worker/rank/step_trainer.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"
#include "nn_worker/trainer/predictions.h"

namespace satrap {

struct NetworkTrainerOptions {
  const PartLayout* layout = nullptr;  // the one that `network` was made with
  size_t max_samples = 0;              // of one part, as the network's
  int64_t global_batch_size = 1;
  bool trains = true;    // false: the job only scores, and the network need not be one that trains
  bool ordered = false;  // JobConfig.mode is SYNC: the parts of a step are of one global batch
  bool has_loss_scale = false;   // the job computes in F16
  float gradient_clip_norm = 0;  // of the job; 0: none
  Network* network = nullptr;
  Collective* collective = nullptr;
  ForkJoinPool* pool = nullptr;             // may be that of the network's backend
  CutEngine* cuts = nullptr;                // rank 0 only
  std::string run_dir;                      // that of the cuts; rank 0 only
  ScoreWindows* scores = nullptr;           // gets every step that counts; may be null
  PredictionWriter* predictions = nullptr;  // of the one test pass; null: none are written
  // The network was made for outputs (NetworkOptions.outputs), and `predictions` gets their values.
  // There is no loss and no metric.
  bool writes_outputs = false;
  // Gets a time for each step with a part, on the step's thread: the seconds from handing its
  // inputs to the backend until its gradients of embeddings are back. Null: not measured.
  std::function<void(double seconds)> on_device_step;
  // Set to what the step's thread does next, for people. The text is never freed. May be null.
  std::atomic<const char*>* activity = nullptr;
};

class NetworkTrainer final : public StepTrainer {
 public:
  // Nothing in `options` is owned; all must outlive this object.
  explicit NetworkTrainer(const NetworkTrainerOptions& options);
  ~NetworkTrainer() override;

  // Takes all memory for parts up to the size of `largest`, to train them or to score. Only for a
  // device. Before the first Prepare; waits for the device. RESOURCE_EXHAUSTED.
  absl::Status Reserve(const PartInput& largest);

  // Collective, blocking; before the first JoinStep. `model` is what rank 0 has read
  // (ReadStartModel), and sends to the others, who may not see its disk; theirs is ignored. Loads
  // tables and network, but not the state of the dense optimizer, to train on or to score. If the
  // model's cut vanishes meanwhile, *model becomes the one that is loaded instead
  // (LoadOrLookAgain).
  absl::Status StartFromModel(StartModel* model);
  // As StartFromModel, but for the network and the state of its optimizer, to continue from a cut
  // as if nothing had happened. The embedding PSs have loaded the tables themselves.
  absl::Status StartFromCut(const StartModel& model);

  std::unique_ptr<PreparedPart> Prepare(PartInput part) override;
  void JoinStep(uint64_t step, std::unique_ptr<PreparedPart> part, StepFlags flags,
                absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) override;
  void EndStep(double squares, absl::AnyInvocable<void(absl::StatusOr<StepEnd>)> done) override;
  void Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) override;
  void MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) override;
  void BeginCut(CutPlan plan, absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done,
                absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended) override;
  void AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) override;
  void RestoreModel(const std::string& cut, absl::AnyInvocable<void(absl::Status)> done) override;

  // An estimate of the AUC over this rank's last training samples, each predicted before the step
  // that it was trained in. NaN unless both classes occur. Thread-safe.
  double RecentAuc() const;

 private:
  class Preparation;
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_NETWORK_TRAINER_H_
