#include "nn_worker/rank/step_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/thread/mutex.h"

namespace satrap {
namespace {

// How often the clock is checked.
constexpr int64_t kCheckUs = 5'000'000;

constexpr char kBetweenCalls[] =
    "waits for a part from an embedding worker, or for the answer to a push";

}  // namespace

// The object shares this with tasks of the executor, which may run after the object is destroyed.
struct StepWatch::State {
  State(const Activity* activity, Executor* executor, Tell tell)
      : activity(activity),
        executor(executor),
        tell(std::move(tell)),
        since_us(executor->NowUs()) {}

  void Begin(std::string call, bool is_step) {
    MutexLock lock(&mutex);
    doing = std::move(call);
    trains = is_step;
  }
  void End() {
    MutexLock lock(&mutex);
    doing.clear();
    trains = false;
    since_us = executor->NowUs();
    late_us = kLateUs;
  }
  // Checks the clock. Returns whether there will be another check.
  bool Check() {
    // tell_mutex lets Stop wait for a running call of `tell`. `mutex` is not held during that call,
    // because the call may take long, and a step must be able to end meanwhile.
    MutexLock telling(&tell_mutex);
    std::string text;
    int64_t passed_us = 0;
    {
      MutexLock lock(&mutex);
      if (ended) return false;
      passed_us = executor->NowUs() - since_us;
      if (passed_us < late_us) return true;
      late_us = 2 * passed_us;
      const char* const detail = activity->load();
      text = doing.empty() ? kBetweenCalls : doing;
      if (trains && detail != nullptr) absl::StrAppend(&text, ": ", detail);
    }
    tell(text, passed_us / 1'000'000);
    return true;
  }
  void Stop() {
    {
      MutexLock lock(&mutex);
      ended = true;
    }
    MutexLock telling(&tell_mutex);
  }

  const Activity* const activity;
  Executor* const executor;
  const Tell tell;

  Mutex tell_mutex;  // acquired before `mutex`
  Mutex mutex;
  std::string doing GUARDED_BY(mutex);    // empty: between two calls
  bool trains GUARDED_BY(mutex) = false;  // in a step, which `activity` describes
  int64_t since_us GUARDED_BY(mutex);     // the last end of a call
  int64_t late_us GUARDED_BY(mutex) = kLateUs;
  bool ended GUARDED_BY(mutex) = false;
};

StepWatch::StepWatch(StepTrainer* inner, const Activity* activity, Executor* executor, Tell tell)
    : inner_(inner), state_(std::make_shared<State>(activity, executor, std::move(tell))) {
  CheckLater(state_);
}

StepWatch::~StepWatch() { Stop(); }

void StepWatch::Stop() { state_->Stop(); }

void StepWatch::CheckLater(const std::shared_ptr<State>& state) {
  state->executor->PostAfter(kCheckUs, [state] {
    if (state->Check()) CheckLater(state);
  });
}

template <typename Result>
absl::AnyInvocable<void(Result)> StepWatch::Watched(std::string doing,
                                                    absl::AnyInvocable<void(Result)> done,
                                                    bool is_step) {
  state_->Begin(std::move(doing), is_step);
  return [state = state_, done = std::move(done)](Result result) mutable {
    state->End();
    done(std::move(result));
  };
}

std::unique_ptr<PreparedPart> StepWatch::Prepare(PartInput part) {
  return inner_->Prepare(std::move(part));
}

void StepWatch::JoinStep(uint64_t step, std::unique_ptr<PreparedPart> part, StepFlags flags,
                         absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) {
  done = Watched(absl::StrCat("trains step ", step + 1), std::move(done), /*is_step=*/true);
  inner_->JoinStep(step, std::move(part), flags, std::move(done));
}

void StepWatch::EndStep(double squares, absl::AnyInvocable<void(absl::StatusOr<StepEnd>)> done) {
  inner_->EndStep(squares, Watched("ends a clipped step", std::move(done)));
}

void StepWatch::Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) {
  inner_->Score(std::move(part), Watched("scores a part", std::move(done)));
}

void StepWatch::MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) {
  inner_->MergeEvaluation(Watched("merges the metrics of all ranks", std::move(done)));
}

void StepWatch::BeginCut(CutPlan plan, absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done,
                         absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended) {
  inner_->BeginCut(
      std::move(plan),
      Watched("begins a cut, which needs all embedding PSs and ranks", std::move(done)),
      std::move(ended));
}

void StepWatch::AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) {
  inner_->AwaitCut(Watched("waits until a cut is written", std::move(done)));
}

void StepWatch::RestoreModel(const std::string& cut, absl::AnyInvocable<void(absl::Status)> done) {
  inner_->RestoreModel(cut, Watched("loads a cut", std::move(done)));
}

}  // namespace satrap
