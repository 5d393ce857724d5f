// The folders of a run's cuts, RUN/checkpoints: which of them are whole, which are kept, and the
// links `latest` and `best`. Only the log says which cuts are committed.
//
// Blocking. Thread-compatible. One process at a time changes the folders: the coordinator of the
// newest generation. Callers first check that they are that one (RunLog::HasForeignEntry). A
// coordinator that is superseded just after its check may move a link back, which the next commit
// corrects, or remove a cut that it considers too old.

#ifndef SATRAP_DEPLOY_COORDINATOR_CLAIM_CUT_FOLDERS_H_
#define SATRAP_DEPLOY_COORDINATOR_CLAIM_CUT_FOLDERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/run_log.h"
#include "common/file/file_system.h"
#include "proto/run_log.pb.h"

namespace satrap {

class CutFolders {
 public:
  // `generation` is the caller's. `file_system` is not owned.
  CutFolders(std::string run_dir, uint64_t generation, FileSystem* file_system)
      : run_dir_(std::move(run_dir)), generation_(generation), file_system_(file_system) {}

  // Checks that the cut in the folder `name` is whole, and returns its entry for the log, with the
  // checksum of its manifest and without what only rank 0 knows (best, last, leave, seconds).
  // DATA_LOSS, naming the file, if one cannot be read, is missing, or has another size than the
  // manifest says. Other errors are about the request: INVALID_ARGUMENT if `name` is no folder of
  // RUN/checkpoints or holds another cut; FAILED_PRECONDITION if the cut is from another
  // generation.
  absl::StatusOr<CutEntry> Check(const std::string& name) const;

  // Sets `latest` to the cut that the next generation begins from, and `best` to the best cut that
  // this one knows of. If it knows of none, `best` is removed.
  absl::Status MoveLinks(const RunLog& log);

  // Removes all committed cuts but the newest `keep` and the best cuts that these know of, because
  // a run that continues from one of them is tested with its best cut. If one of these cannot be
  // read, removes nothing. A cut that another command has pinned (common/checkpoint/cut_pin.h)
  // stays until a later call. After kCallsUntilPinIsTold calls in a row, and again after as many
  // more, the status is UNAVAILABLE and names the cut and who pins it; all others are removed all
  // the same. Calls `begins`, if it is not null, with the name of each cut before removing it.
  static constexpr int kCallsUntilPinIsTold = 10;
  absl::Status RemoveOld(const RunLog& log, int keep,
                         const std::function<void(const std::string& cut)>& begins = nullptr);

  // Removes cuts of earlier generations that are not in the log and not pinned: nobody will commit
  // them.
  absl::Status RemoveUncommitted(const RunLog& log);

 private:
  std::string Dir() const { return CheckpointsDir(run_dir_); }
  absl::StatusOr<std::string> BestOf(const std::string& cut) const;
  absl::Status MoveLink(const std::string& link, const std::string& cut);
  // UNAVAILABLE if it is pinned.
  absl::Status RemoveCut(const std::string& name);
  // Counts another call that has found the cut pinned. UNAVAILABLE if it is time to report that.
  absl::Status OnPinned(const std::string& name);

  const std::string run_dir_;
  const uint64_t generation_;
  FileSystem* const file_system_;
  std::map<std::string, int> pinned_;  // calls of RemoveOld in a row, by cut
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_CLAIM_CUT_FOLDERS_H_
