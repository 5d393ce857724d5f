// The StepTrainer of a real NN worker: embeddings in, forward and backward through the dense
// network, the reduction over the ranks, gradients out.
//
// A step costs two allreduces, in addition to those of layers (batch norm): one of the dense
// gradient, during which the gradients of embeddings are made, and then a small one of the values
// that decide the step. The second comes last because it tells all ranks whether the gradients of
// embeddings are finite in the form in which they are sent.
//
// Threads. A step runs on one thread of this object. That thread blocks in collectives, in
// AwaitCut, and while embedding PSs mark or load their rows; it also runs the `done` callbacks. If
// a step is running, the next part is prepared on a second thread. Otherwise the first thread
// prepares it in JoinStep, so that a part which is joined at once costs no change of threads.
// Preparing during a step gains time if a core is free or the step waits for other ranks. On a busy
// CPU it slows that step by as much as it saves in the next one. The destructor waits for a running
// call: abort the collective first if ranks may be missing.

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
  // Called on the step's thread with a time for each step that has a part: the seconds from handing
  // its inputs to the backend until the gradients of its embeddings are back. Null: not measured.
  std::function<void(double seconds)> on_device_step;
  // The trainer sets this to a short text that tells people what the step's thread does next. The
  // text is never freed. May be null.
  std::atomic<const char*>* activity = nullptr;
};

class NetworkTrainer final : public StepTrainer {
 public:
  // Nothing in `options` is owned; all must outlive this object.
  explicit NetworkTrainer(const NetworkTrainerOptions& options);
  ~NetworkTrainer() override;

  // Allocates all memory for parts up to the size of `largest`, for training or for scoring. Only
  // for a network on a device. Call it before the first Prepare. Waits for the device.
  // RESOURCE_EXHAUSTED if there is not enough memory.
  absl::Status Reserve(const PartInput& largest);

  // Collective; blocks. Call it before the first JoinStep. `model` is what rank 0 has read
  // (ReadStartModel). Rank 0 sends it to the other ranks, which may not see its disk; their `model`
  // is ignored. Loads tables and network, to train further or to score, but not the state of the
  // dense optimizer. If the model's cut vanishes meanwhile, *model becomes the one that is loaded
  // instead (LoadOrLookAgain).
  absl::Status StartFromModel(StartModel* model);
  // Like StartFromModel, but loads the network and the state of its optimizer, to continue from a
  // cut as if training had never stopped. The embedding PSs have loaded the tables themselves.
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
  // that trained it. NaN unless both classes occur. Thread-safe.
  double RecentAuc() const;

 private:
  class Preparation;
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_NETWORK_TRAINER_H_
