// The progress of a cut, for the thread that waits for the cut.
//
// Thread-safe.

#ifndef SATRAP_NN_WORKER_TRAINER_CUT_WATCH_H_
#define SATRAP_NN_WORKER_TRAINER_CUT_WATCH_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/thread/mutex.h"

namespace satrap {

class CutWatch {
 public:
  // Call Mark at most once, and End once. `committed`: whether the cut is committed, or the cut's
  // error.
  void Mark() {
    MutexLock lock(&mutex_);
    marked_ = true;
    changed_.NotifyAll();
  }
  void End(absl::StatusOr<bool> committed) {
    MutexLock lock(&mutex_);
    committed_ = std::move(committed);
    changed_.NotifyAll();
  }

  // Waits until the cut is marked or has ended. Returns the cut's error if there is one.
  absl::Status AwaitMark() {
    MutexLock lock(&mutex_);
    while (!marked_ && !committed_.has_value()) changed_.Wait(&mutex_);
    return committed_.has_value() ? committed_->status() : absl::OkStatus();
  }
  // Waits until the cut has ended. Returns whether it is committed.
  absl::StatusOr<bool> AwaitEnd() {
    MutexLock lock(&mutex_);
    while (!committed_.has_value()) changed_.Wait(&mutex_);
    return *committed_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool marked_ GUARDED_BY(mutex_) = false;
  absl::optional<absl::StatusOr<bool>> committed_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_CUT_WATCH_H_
