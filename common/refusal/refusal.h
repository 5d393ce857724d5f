// A coordinator that cannot begin, for example on a storage without hard links, may be unable to
// put an end into the run's log. So the cause is left in a file of the run's folder, by the
// coordinator that serves its refusal or, if it has exited, by its supervisor. Both Jobs of the run
// take that for the end of the submission.
//
// Thread-safe: the functions depend only on their arguments and on the run's folder.
// RefusalWatch is not.

#ifndef SATRAP_COMMON_REFUSAL_REFUSAL_H_
#define SATRAP_COMMON_REFUSAL_REFUSAL_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "proto/control.pb.h"

namespace satrap {

// Leaves why the coordinator of that submission does not begin. Errors are ignored: the container's
// message says it, too.
void LeaveRefusal(const std::string& run_dir, uint64_t submission, const Ending& ending);
// Takes it back, because the coordinator is started again.
void RemoveRefusal(const std::string& run_dir, uint64_t submission);
// What was left; nothing if it was not.
absl::optional<Ending> RefusalOf(const std::string& run_dir, uint64_t submission);

// Watches for a refusal of the coordinator that is there now. A resume that could not begin may
// have left one, and the next one has the same number, because the log knows of neither. So only
// what is left after the construction counts. A coordinator that serves its refusal leaves it again
// every few seconds; the supervisor of one that exits, whenever it has refused again.
class RefusalWatch {
 public:
  RefusalWatch(std::string run_dir, uint64_t submission);
  // What was left since the construction; nothing if nothing was.
  absl::optional<Ending> New() const;

 private:
  const std::string run_dir_;
  const uint64_t submission_;
  const std::string before_;  // tells the file that was there from others
};

}  // namespace satrap

#endif  // SATRAP_COMMON_REFUSAL_REFUSAL_H_
