// Decides whether a run may be restarted after a failure, and after which pause, given its earlier
// restarts.
//
// Not thread-safe: only the launcher's main thread may use it.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_RESTART_COUNT_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_RESTART_COUNT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/control.pb.h"

namespace satrap {

class RestartCount {
 public:
  // Call when a cut is committed: restarts count towards max_restarts from 0 again.
  void OnCut() { since_cut_ = 0; }
  // Call when a generation that nobody asked to end has ended with `end`. Returns the pause before
  // the next one in ms, which is the longest of three: 0, 1, 2, 4, ... 30 s, by the number of
  // restarts since the last cut; 0.1, 0.2, ... 5 s, by how many generations in a row have ended
  // before all roles were ready; and the pause of `end` in the table of causes
  // (common/role/cause_table.h). FAILED_PRECONDITION if no generation may follow. The error's
  // message is to be appended to the text of `end`, and is empty for the first failure of a run
  // without restarts.
  absl::StatusOr<int64_t> AddFailure(const Ending& end, int max_restarts);
  // Whether the last AddFailure failed because the same end has come twice and no restart cures it.
  bool repeated() const { return repeated_; }
  // Call when a generation has ended because somebody asked it to end.
  void AddWish() { before_ = Ending(); }

 private:
  int since_cut_ = 0;
  bool repeated_ = false;
  int before_ready_ = 0;  // generations in a row that ended before they were ready
  Ending before_;         // how the previous generation failed; empty: it has not
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_RESTART_COUNT_H_
