// Commits cuts by appending them to the run's log. If the ranks leave after a cut so that the run
// can change its size, also appends the announcement of the new size.
//
// A cut is committed when its CUT entry is linked into the log (common/checkpoint/run_log.h). A cut
// is abandoned if one of its files is damaged or cannot be read, or if its entry cannot be written
// and certainly is not in the log. This loses nothing, because the work is still in the tables. If
// it is not known whether the entry is in the log, the commit is not answered and the generation
// ends.
//
// Only tasks of the coordinator's disk may use it; they run one at a time. It holds the state's
// mutex only briefly, and never while it calls its host.

#ifndef SATRAP_DEPLOY_COORDINATOR_LOG_CUT_COMMITS_H_
#define SATRAP_DEPLOY_COORDINATOR_LOG_CUT_COMMITS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/run_log.h"
#include "common/role/kill_points.h"
#include "deploy/coordinator/claim/cut_folders.h"
#include "deploy/coordinator/state/coordinator_state.h"
#include "proto/control.pb.h"

namespace satrap {

class CutCommits {
 public:
  // The services that this class needs from the engine.
  class Host {
   public:
    virtual ~Host() = default;
    // Sets the entry's time, and appends the entry to the run's log.
    virtual absl::Status Append(RunLogEntry entry) = 0;
    // After a failed Append: whether the entry certainly is not in the log. A link or a sync may
    // have taken effect although it returned an error.
    virtual bool IsAbsent(const absl::Status& status) const = 0;
  };
  // Owns none of the pointers. `log` is the host's; `kill_points` may be null.
  CutCommits(CoordinatorState* state, Host* host, const RunLog* log, const CutFolders* cut_folders,
             const Envelope& run, KillPoints* kill_points);

  // Commits or abandons the cut. Returns the answer to rank 0, or nullopt if it is not known
  // whether the cut is committed. Rank 0 must then get no answer: if it heard that the cut is not
  // committed, it would remove the cut's files. It learns from its heartbeat that the generation
  // has ended. Errors are about the request, or say that the generation is over; rank 0 would get
  // them for every later cut, too.
  absl::optional<absl::StatusOr<CommitCutAnswer>> Commit(const CommitCutRequest& request);

 private:
  absl::StatusOr<CutEntry> Check(const CommitCutRequest& request) const;
  // Sets in `cut` why the ranks leave after it, and begins the append.
  absl::Status BeginAppend(const CommitCutRequest& request, CutEntry* cut);
  absl::optional<absl::StatusOr<CommitCutAnswer>> Append(const CommitCutRequest& request,
                                                         const CutEntry& cut);
  void OnAppended(const CommitCutRequest& request, const RunLogEntry& entry)
      REQUIRES(state_->mutex);
  void MoveAfter(const CutEntry& cut) REQUIRES(state_->mutex);
  void AnnounceSize();
  bool EndUnlessKnown(const absl::Status& error);

  CoordinatorState* const state_;
  Host* const host_;
  const RunLog* const log_;
  const CutFolders* const cut_folders_;
  const uint64_t run_id_;
  const uint64_t generation_;
  KillPoints* const kill_points_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_LOG_CUT_COMMITS_H_
