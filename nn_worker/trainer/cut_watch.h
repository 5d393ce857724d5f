// How far a cut is, for the thread that waits for it.
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
  // Mark and End are each called once. `committed`: whether the cut is committed, or its error.
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

  // Returns when the cut is marked or has ended. An error is the cut's.
  absl::Status AwaitMark() {
    MutexLock lock(&mutex_);
    while (!marked_ && !committed_.has_value()) changed_.Wait(&mutex_);
    return committed_.has_value() ? committed_->status() : absl::OkStatus();
  }
  // Whether the cut is committed.
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
