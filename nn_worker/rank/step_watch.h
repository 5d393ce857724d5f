// Reports when a rank has not finished a step for a while, and says what the rank is doing. This is
// a StepTrainer that wraps another one and records which call is in progress. A scored part or the
// end of any other call counts as a finished step.
//
// As thread-safe as any StepTrainer.

#ifndef SATRAP_NN_WORKER_RANK_STEP_WATCH_H_
#define SATRAP_NN_WORKER_RANK_STEP_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/thread/executor.h"
#include "nn_worker/rank/step_trainer.h"

namespace satrap {

class StepWatch final : public StepTrainer {
 public:
  static constexpr int64_t kLateUs = 60'000'000;
  // What a trainer is doing within a step. The text is never freed, and any thread may set it.
  using Activity = std::atomic<const char*>;
  // Called on the executor with what the trainer is doing, and the number of seconds since a step
  // last finished.
  using Tell = std::function<void(const std::string& doing, int64_t seconds)>;

  // Starts the clock. `tell` is called after kLateUs without a finished step and again each time
  // this wait has doubled, but not after Stop or the end of this object. Only `tell` is owned;
  // `inner` and `activity` must outlive this object, and the executor must outlive its tasks.
  StepWatch(StepTrainer* inner, const Activity* activity, Executor* executor, Tell tell);
  ~StepWatch() override;

  // Call when no more steps are expected: `tell` is not called from then on.
  void Stop();

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

 private:
  struct State;
  // Records the call, and records its end before `done` runs.
  template <typename Result>
  absl::AnyInvocable<void(Result)> Watched(std::string doing, absl::AnyInvocable<void(Result)> done,
                                           bool is_step = false);
  static void CheckLater(const std::shared_ptr<State>& state);

  StepTrainer* const inner_;
  const std::shared_ptr<State> state_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_STEP_WATCH_H_
