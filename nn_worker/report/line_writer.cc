#include "nn_worker/report/line_writer.h"

#include <deque>
#include <utility>

#include "absl/types/optional.h"
#include "common/thread/mutex.h"

namespace satrap {

struct LineWriter::State {
  State(std::function<bool(absl::string_view)> write, std::function<int64_t()> now_ms)
      : write(std::move(write)), now_ms(std::move(now_ms)) {}

  const std::function<bool(absl::string_view)> write;
  const std::function<int64_t()> now_ms;
  Mutex mutex;
  CondVar changed;
  std::deque<std::string> lines GUARDED_BY(mutex);
  absl::optional<int64_t> writing_since_ms GUARDED_BY(mutex);
  uint64_t dropped GUARDED_BY(mutex) = 0;
  bool closing GUARDED_BY(mutex) = false;
  bool ended GUARDED_BY(mutex) = false;
};

LineWriter::LineWriter(std::function<bool(absl::string_view line)> write,
                       std::function<int64_t()> now_ms)
    : state_(std::make_shared<State>(std::move(write), std::move(now_ms))),
      thread_([state = state_] { Run(state); }) {}

LineWriter::~LineWriter() {
  bool ended;
  {
    MutexLock lock(&state_->mutex);
    state_->closing = true;
    state_->changed.NotifyAll();
    const int64_t deadline_ms = MonotonicMs() + kMostClosingMs;
    while (!state_->ended) {
      const int64_t left_ms = deadline_ms - MonotonicMs();
      if (left_ms <= 0) break;
      state_->changed.WaitFor(&state_->mutex, left_ms);
    }
    ended = state_->ended;
    // Lines that are not being written yet are dropped.
    state_->lines.clear();
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void LineWriter::Append(absl::string_view line) {
  MutexLock lock(&state_->mutex);
  if (state_->lines.size() >= kMostLines) {
    ++state_->dropped;
    return;
  }
  state_->lines.emplace_back(line);
  state_->changed.NotifyAll();
}

LineWriter::Trouble LineWriter::trouble() const {
  MutexLock lock(&state_->mutex);
  Trouble trouble;
  trouble.dropped = state_->dropped;
  if (state_->writing_since_ms.has_value()) {
    const int64_t ms = state_->now_ms() - *state_->writing_since_ms;
    if (ms >= kHangMs) trouble.hangs_seconds = static_cast<double>(ms) * 1e-3;
  }
  return trouble;
}

void LineWriter::Run(const std::shared_ptr<State>& state) {
  while (true) {
    std::string line;
    {
      MutexLock lock(&state->mutex);
      while (state->lines.empty() && !state->closing) state->changed.Wait(&state->mutex);
      if (state->lines.empty()) {
        state->ended = true;
        state->changed.NotifyAll();
        return;
      }
      line = std::move(state->lines.front());
      state->lines.pop_front();
      state->writing_since_ms = state->now_ms();
    }
    const bool written = state->write(line);
    MutexLock lock(&state->mutex);
    state->writing_since_ms.reset();
    if (!written) ++state->dropped;
  }
}

}  // namespace satrap
