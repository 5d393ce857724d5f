// Whether, and after which pause, a run may be restarted after a failure, given its earlier
// restarts.
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
  // A cut was committed: the count of max_restarts begins anew.
  void OnCut() { since_cut_ = 0; }
  // A generation has ended by `end`, and nobody has asked for the one that follows. Returns the
  // pause before the next one in ms. It is the longest of: 0, 1, 2, 4, ... 30 s, by the restarts
  // since the last cut; 0.1, 0.2, ... 5 s, by how many generations in a row have ended before all
  // roles were ready; and what the table of causes says (common/role/cause_table.h).
  // FAILED_PRECONDITION if no generation may follow; its message continues that of `end`, and is
  // empty for the first failure of a run without restarts.
  absl::StatusOr<int64_t> AddFailure(const Ending& end, int max_restarts);
  // Whether the last AddFailure was refused because no restart cures what has happened twice.
  bool repeated() const { return repeated_; }
  // A generation was ended because somebody asked for that.
  void AddWish() { before_ = Ending(); }

 private:
  int since_cut_ = 0;
  bool repeated_ = false;
  int before_ready_ = 0;  // generations in a row
  Ending before_;         // how the previous generation failed; empty: it has not
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_RESTART_COUNT_H_
