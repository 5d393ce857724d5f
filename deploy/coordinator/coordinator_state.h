// What a coordinator knows of its generation and changes while it serves it. A base of
// CoordinatorEngine::Rep (coordinator_rep.h), which has what is made of the claimed generation.
//
// Everything is guarded by `mutex`.

#ifndef SATRAP_DEPLOY_COORDINATOR_COORDINATOR_STATE_H_
#define SATRAP_DEPLOY_COORDINATOR_COORDINATOR_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/rpc/rpc.h"
#include "common/thread/mutex.h"
#include "deploy/coordinator/wishes.h"
#include "proto/control.pb.h"
#include "proto/run_log.pb.h"

namespace satrap {

struct CoordinatorState {
  Mutex mutex;
  bool looks_at_log GUARDED_BY(mutex) = false;  // a task of `disk` does, or will
  RunState state GUARDED_BY(mutex) = STARTING;
  Ending ending GUARDED_BY(mutex);  // of one that has ended
  // What an entry that is being appended makes true: "CUT is committed", "the run has finished".
  // Empty: nothing that anybody asks about.
  absl::optional<std::string> appending GUARDED_BY(mutex);
  bool dropping GUARDED_BY(mutex) = false;  // a task of `disk` appends DROPPED, or will
  absl::optional<std::string> uncertain GUARDED_BY(mutex);  // the same: nobody knows whether it is
  absl::optional<int64_t> disk_busy_since_us GUARDED_BY(mutex);  // less time of standstill
  Wishes wishes GUARDED_BY(mutex);
  std::map<std::string, std::string> store GUARDED_BY(mutex);
  TrainProgress train GUARDED_BY(mutex);
  CutProgress cuts GUARDED_BY(mutex);
  absl::optional<CutEntry> last_cut GUARDED_BY(mutex);
  int64_t last_cut_unix_ms GUARDED_BY(mutex) = 0;
  absl::optional<uint64_t> order_fingerprint GUARDED_BY(mutex);
  absl::optional<RunResult> result GUARDED_BY(mutex);
  std::vector<rpc::Callback> finishers GUARDED_BY(mutex);
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_COORDINATOR_STATE_H_
