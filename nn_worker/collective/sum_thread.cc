#include "nn_worker/collective/sum_thread.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/numeric/denormals.h"
#include "common/thread/mutex.h"

namespace satrap {

struct SumThread::State {
  explicit State(Sum sum) : sum(std::move(sum)) {}

  const Sum sum;
  Mutex mutex;
  CondVar changed;
  absl::Span<float> values GUARDED_BY(mutex);
  bool running GUARDED_BY(mutex) = false;
  bool stopping GUARDED_BY(mutex) = false;
  absl::Status status GUARDED_BY(mutex);  // of the last sum that has ended
};

class SumThread::Pending final : public PendingSum {
 public:
  explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~Pending() override { (void)Wait(std::numeric_limits<int64_t>::max()); }

  bool Ended() override {
    if (ended_) return true;
    MutexLock lock(&state_->mutex);
    if (state_->running) return false;
    ended_ = true;
    status_ = state_->status;
    return true;
  }

  absl::Status Wait(int64_t timeout_ms) override {
    using Clock = std::chrono::steady_clock;
    // Waits a day at a time, because adding the largest timeout to a clock would overflow.
    constexpr int64_t kMostMs = 24 * 3600 * 1000;
    const Clock::time_point begin = Clock::now();
    while (!Ended()) {
      const int64_t waited =
          std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
      if (waited >= timeout_ms) {
        return absl::DeadlineExceededError(
            absl::StrCat("collective: the sum has not ended in ", timeout_ms, " ms"));
      }
      MutexLock lock(&state_->mutex);
      if (!state_->running) continue;
      state_->changed.WaitFor(&state_->mutex, std::min(kMostMs, timeout_ms - waited));
    }
    return status_;
  }

 private:
  const std::shared_ptr<State> state_;
  bool ended_ = false;  // from then on the state may be that of a later sum
  absl::Status status_;
};

SumThread::SumThread(Sum sum) : state_(std::make_shared<State>(std::move(sum))) {}

SumThread::~SumThread() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&state_->mutex);
    CHECK(!state_->running) << "a collective was destroyed while a sum was in progress";
    state_->stopping = true;
    state_->changed.NotifyAll();
  }
  thread_.join();
}

std::unique_ptr<PendingSum> SumThread::Start(absl::Span<float> values) {
  {
    MutexLock lock(&state_->mutex);
    CHECK(!state_->running) << "a sum is under way";
    state_->running = true;
    state_->values = values;
    state_->changed.NotifyAll();
  }
  if (!thread_.joinable()) thread_ = std::thread([state = state_.get()] { Run(state); });
  return std::make_unique<Pending>(state_);
}

// Flushes denormals to zero as other threads do, so that sums on this thread have the same bits.
void SumThread::Run(State* state) {
  SetFlushToZero();
  while (true) {
    absl::Span<float> values;
    {
      MutexLock lock(&state->mutex);
      while (!state->running && !state->stopping) state->changed.Wait(&state->mutex);
      if (state->stopping) return;
      values = state->values;
    }
    absl::Status status = state->sum(values);
    MutexLock lock(&state->mutex);
    state->status = std::move(status);
    state->running = false;
    state->changed.NotifyAll();
  }
}

namespace {

class SumOfOneRank final : public PendingSum {
 public:
  explicit SumOfOneRank(absl::Status status) : status_(std::move(status)) {}
  bool Ended() override { return true; }
  absl::Status Wait(int64_t) override { return status_; }

 private:
  const absl::Status status_;
};

}  // namespace

std::unique_ptr<PendingSum> EndedSum(absl::Status status) {
  return std::make_unique<SumOfOneRank>(std::move(status));
}

}  // namespace satrap
