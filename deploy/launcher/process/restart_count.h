// Whether, and after which pause, a run may be restarted after a failure, by the restarts before.
//
// Not thread-safe: for the launcher's main thread.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_RESTART_COUNT_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_RESTART_COUNT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/control.pb.h"

namespace satrap {

class RestartCount {
 public:
  // The count of max_restarts begins anew.
  void OnCut() { since_cut_ = 0; }
  // A generation has ended by `end`, and is not followed by one that somebody has wished. Returns
  // the pause before the next one in ms: 0, 1, 2, 4, ... 30 s by the restarts since the last cut;
  // at least 0.1, 0.2, ... 5 s by how many generations in a row have ended before all roles were
  // ready; and at least what the table of causes says (common/role/cause_table.h).
  // FAILED_PRECONDITION if there must be no next one; its message continues that of `end`, and is
  // empty for the first failure of a run without restarts.
  absl::StatusOr<int64_t> AddFailure(const Ending& end, int max_restarts);
  // Whether the last AddFailure was refused because no restart cures what has happened twice.
  bool repeated() const { return repeated_; }
  // A generation was ended by a wish.
  void AddWish() { before_ = Ending(); }

 private:
  int since_cut_ = 0;
  bool repeated_ = false;
  int before_ready_ = 0;  // generations in a row
  Ending before_;         // how the generation before has failed; empty: it has not
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_RESTART_COUNT_H_
