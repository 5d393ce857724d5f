// The folders of a run's cuts in RUN/checkpoints: checks whether cuts are whole, removes old ones,
// and sets the links `latest` and `best`. Only the log says which cuts are committed.
//
// Blocking. Thread-compatible. Only one process at a time may change the folders: the coordinator
// of the newest generation. So callers first check that no later generation has begun
// (RunLog::HasForeignEntry). If one begins just after the check, the old coordinator may still set
// a link back, which the next commit corrects, or remove a cut that it considers too old.

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
  // `generation` is that of the calling coordinator. `file_system` is not owned.
  CutFolders(std::string run_dir, uint64_t generation, FileSystem* file_system)
      : run_dir_(std::move(run_dir)), generation_(generation), file_system_(file_system) {}

  // Checks that the cut in the folder `name` is whole, and returns its entry for the log, with the
  // checksum of its manifest. The caller adds what only rank 0 knows (best, last, leave, seconds).
  // DATA_LOSS, naming the file, if a file is missing, cannot be read, or does not have the size
  // that the manifest says. Other errors are about the request: INVALID_ARGUMENT if RUN/checkpoints
  // has no folder `name` or it holds another cut; FAILED_PRECONDITION if the cut is from another
  // generation.
  absl::StatusOr<CutEntry> Check(const std::string& name) const;

  // Sets `latest` to the cut that the next generation begins from, and `best` to the best cut that
  // `latest` records. If it records none, removes `best`.
  absl::Status MoveLinks(const RunLog& log);

  // Removes old committed cuts. Keeps the newest `keep` cuts and the best cuts that these record,
  // because a run that continues from a cut is tested with the best cut that this cut records. If a
  // cut that is kept cannot be read, removes nothing. A cut that another command has pinned
  // (common/checkpoint/cut_pin.h) stays until a later call. Every time that another
  // kCallsUntilPinIsTold calls in a row have found a cut pinned, returns UNAVAILABLE with the name
  // of the cut and of who pins it; the other cuts are removed nevertheless. Unless null, `begins`
  // is called with the name of each cut before the cut is removed.
  static constexpr int kCallsUntilPinIsTold = 10;
  absl::Status RemoveOld(const RunLog& log, int keep,
                         const std::function<void(const std::string& cut)>& begins = nullptr);

  // Removes cuts of earlier generations that are neither in the log nor pinned: they will never be
  // committed.
  absl::Status RemoveUncommitted(const RunLog& log);

 private:
  std::string Dir() const { return CheckpointsDir(run_dir_); }
  absl::StatusOr<std::string> BestOf(const std::string& cut) const;
  absl::Status MoveLink(const std::string& link, const std::string& cut);
  // UNAVAILABLE if the cut is pinned.
  absl::Status RemoveCut(const std::string& name);
  // Counts a call that found the cut pinned. Returns UNAVAILABLE if the pin must now be reported
  // (kCallsUntilPinIsTold).
  absl::Status OnPinned(const std::string& name);

  const std::string run_dir_;
  const uint64_t generation_;
  FileSystem* const file_system_;
  std::map<std::string, int> pinned_;  // calls of RemoveOld in a row that found it pinned, by cut
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_CLAIM_CUT_FOLDERS_H_
