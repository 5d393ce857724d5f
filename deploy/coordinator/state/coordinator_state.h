// The state that a coordinator changes while it serves a generation, as far as several of its
// components need it. This is a base class of CoordinatorEngine::Rep (coordinator_rep.h), which has
// the components.
//
// Everything is guarded by `mutex`.

#ifndef SATRAP_DEPLOY_COORDINATOR_STATE_COORDINATOR_STATE_H_
#define SATRAP_DEPLOY_COORDINATOR_STATE_COORDINATOR_STATE_H_

#include <cstdint>
#include <utility>

#include "absl/types/optional.h"
#include "common/thread/mutex.h"
#include "deploy/coordinator/ending/generation_end.h"
#include "deploy/coordinator/state/wishes.h"
#include "proto/control.pb.h"
#include "proto/run_log.pb.h"

namespace satrap {

inline constexpr int64_t kTickUs = 500 * 1000;

struct CoordinatorState {
  explicit CoordinatorState(GenerationEnd end) : end(std::move(end)) {}

  // Tells clang's analysis that the caller holds `mutex`. The components reach this object by a
  // pointer, so the analysis cannot know that their callers hold the same mutex. Nothing is checked
  // when the program runs.
  void AssertHeld() const SATRAP_THREAD_ANNOTATION(assert_capability(mutex)) {}

  Mutex mutex;
  GenerationEnd end GUARDED_BY(mutex);
  bool begins GUARDED_BY(mutex) = false;         // all are ready: RUNNING is due, or has come
  bool says_complete GUARDED_BY(mutex) = false;  // COMPLETE is due, or has come, or was refused
  bool looks_at_log GUARDED_BY(mutex) = false;   // a task of `disk` does, or will
  Wishes wishes GUARDED_BY(mutex);
  TrainProgress train GUARDED_BY(mutex);
  CutProgress cuts GUARDED_BY(mutex);
  absl::optional<CutEntry> last_cut GUARDED_BY(mutex);
  int64_t last_cut_unix_ms GUARDED_BY(mutex) = 0;
  bool training_is_over GUARDED_BY(mutex) = false;  // its last cut is committed
  absl::optional<uint64_t> order_fingerprint GUARDED_BY(mutex);
  absl::optional<RunResult> result GUARDED_BY(mutex);
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_STATE_COORDINATOR_STATE_H_
