// A coordinator that cannot begin, for example on storage without hard links, may be unable to
// append an END to the run log. So the reason is left in a file in the run's folder: by the
// coordinator while it serves its refusal; if it has exited, by its supervisor; and if no
// coordinator answers for long, by Job RUN. Both Jobs of the run treat this file as the end of the
// submission. If the folder cannot be written, only the coordinator's answers give the reason.
//
// Thread-safe: the functions depend only on their arguments and on the run's folder.
// RefusalWatch is not thread-safe.

#ifndef SATRAP_COMMON_REFUSAL_REFUSAL_H_
#define SATRAP_COMMON_REFUSAL_REFUSAL_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "proto/control.pb.h"

namespace satrap {

// Writes the file that says why the coordinator of that submission does not begin. Errors are
// ignored, because the container's message has the reason, too.
void LeaveRefusal(const std::string& run_dir, uint64_t submission, const Ending& ending);
// Removes the file, because the coordinator is started again.
void RemoveRefusal(const std::string& run_dir, uint64_t submission);
// Whether `status` is the answer of a coordinator that refuses to begin the submission.
bool IsRefusal(const StatusAnswer& status, uint64_t submission);
// The ending in the file; nullopt if there is none.
absl::optional<Ending> RefusalOf(const std::string& run_dir, uint64_t submission);

// Watches for a refusal by the present coordinator. An earlier resume that could not begin may have
// left a file under the same submission number, because neither resume is in the run log. So only a
// file that is written after the construction counts. A coordinator that serves its refusal writes
// the file again every few seconds. If the coordinator exits, its supervisor writes the file after
// each refusal.
class RefusalWatch {
 public:
  RefusalWatch(std::string run_dir, uint64_t submission);
  // The refusal that was left since the construction; nullopt if there is none.
  absl::optional<Ending> New() const;

 private:
  const std::string run_dir_;
  const uint64_t submission_;
  const std::string before_;  // identifies the file that existed at the construction
};

}  // namespace satrap

#endif  // SATRAP_COMMON_REFUSAL_REFUSAL_H_
