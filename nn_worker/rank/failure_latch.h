// The first error of a rank, and callbacks that respect it. After this error nothing new begins:
// code that would send a request or join a collective checks failed() first.
//
// Used on one serial executor, except for the callbacks, which any thread may run. It must outlive
// them.

#ifndef SATRAP_NN_WORKER_RANK_FAILURE_LATCH_H_
#define SATRAP_NN_WORKER_RANK_FAILURE_LATCH_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/thread/executor.h"

namespace satrap {

class FailureLatch {
 public:
  using Sink = std::function<void(absl::Status)>;

  // `executor` is not owned.
  FailureLatch(Executor* executor, Sink sink) : executor_(executor), sink_(std::move(sink)) {}

  bool failed() const { return failed_; }

  // Hands the first error to the sink. Later errors are mostly consequences of the first one.
  void Fail(absl::Status status) {
    if (failed_) return;
    failed_ = true;
    sink_(std::move(status));
  }

  // Returns a callback for a status. On the executor, the callback passes an error to Fail, and
  // otherwise runs then(). If the latch has failed before, then() is not run.
  template <typename Then>
  auto WhenOk(Then then) {
    return [this, then = std::move(then)](absl::Status status) mutable {
      executor_->Post([this, then = std::move(then), status = std::move(status)]() mutable {
        if (!status.ok()) Fail(std::move(status));
        if (!failed_) then();
      });
    };
  }
  // As WhenOk, for a result: runs then(T) with its value.
  template <typename T, typename Then>
  auto WhenGood(Then then) {
    return [this, then = std::move(then)](absl::StatusOr<T> result) mutable {
      executor_->Post([this, then = std::move(then), result = std::move(result)]() mutable {
        if (!result.ok()) Fail(result.status());
        if (!failed_) then(*std::move(result));
      });
    };
  }

 private:
  Executor* const executor_;
  const Sink sink_;
  bool failed_ = false;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_FAILURE_LATCH_H_
