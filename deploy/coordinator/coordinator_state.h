// What a coordinator knows about its generation and changes while it serves. This is a base class
// of CoordinatorEngine::Rep (coordinator_rep.h), which adds what is made from the claimed
// generation.
//
// Everything is guarded by `mutex`.

#ifndef SATRAP_DEPLOY_COORDINATOR_COORDINATOR_STATE_H_
#define SATRAP_DEPLOY_COORDINATOR_COORDINATOR_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/rpc/rpc.h"
#include "common/thread/mutex.h"
#include "deploy/coordinator/ending/generation_end.h"
#include "deploy/coordinator/wishes.h"
#include "proto/control.pb.h"
#include "proto/run_log.pb.h"

namespace satrap {

struct CoordinatorState {
  explicit CoordinatorState(GenerationEnd end) : end(std::move(end)) {}

  Mutex mutex;
  GenerationEnd end GUARDED_BY(mutex);
  bool begins GUARDED_BY(mutex) = false;        // all are ready: RUNNING is due, or has come
  bool says_complete GUARDED_BY(mutex) = false;  // COMPLETE is due, or has come, or was refused
  bool looks_at_log GUARDED_BY(mutex) = false;  // a task of `disk` does, or will
  absl::optional<int64_t> disk_busy_since_us GUARDED_BY(mutex);  // plus the time suspended since
  Wishes wishes GUARDED_BY(mutex);
  std::map<std::string, std::string> store GUARDED_BY(mutex);
  TrainProgress train GUARDED_BY(mutex);
  CutProgress cuts GUARDED_BY(mutex);
  absl::optional<CutEntry> last_cut GUARDED_BY(mutex);
  int64_t last_cut_unix_ms GUARDED_BY(mutex) = 0;
  bool training_is_over GUARDED_BY(mutex) = false;  // its last cut is committed
  absl::optional<uint64_t> order_fingerprint GUARDED_BY(mutex);
  absl::optional<RunResult> result GUARDED_BY(mutex);
  std::vector<rpc::Callback> finishers GUARDED_BY(mutex);
  // Members that have failed, and wait until the run's end is in its log.
  std::vector<rpc::Callback> failers GUARDED_BY(mutex);
  int64_t end_decided_us GUARDED_BY(mutex) = 0;  // if end.is_linking()
  bool end_refused GUARDED_BY(mutex) = false;    // its log did not take it, which is told once
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_COORDINATOR_STATE_H_
