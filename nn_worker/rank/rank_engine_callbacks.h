// For the sources of RankEngine alone.

#ifndef SATRAP_NN_WORKER_RANK_RANK_ENGINE_CALLBACKS_H_
#define SATRAP_NN_WORKER_RANK_RANK_ENGINE_CALLBACKS_H_

#include <utility>

#include "nn_worker/rank/rank_engine.h"

namespace satrap {

template <typename T>
absl::AnyInvocable<void(absl::StatusOr<T>)> RankEngine::WhenGood(void (RankEngine::*then)(T)) {
  return [this, then](absl::StatusOr<T> result) {
    executor_->Post([this, then, result = std::move(result)]() mutable {
      if (!result.ok()) Fail(result.status());
      if (!failed_) (this->*then)(*std::move(result));
    });
  };
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_RANK_ENGINE_CALLBACKS_H_
