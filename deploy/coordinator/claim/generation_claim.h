// Claims a generation, which is the first thing that a coordinator does, before it serves anybody.
// The claim reads the log of the run (common/checkpoint/run_log.h), chooses the job and the cut
// that the generation begins from, and appends a GENERATION entry. If several coordinators claim at
// the same time, only one of them gets the generation.
//
// A coordinator of a pod belongs to a submission (common/checkpoint/entries/run_end.h), and
// compares its number with the newest in the log. If its own is less, it claims nothing, ever. If
// they are equal, it goes on with the log's job, or tells the submission's end. If its own is
// greater, it claims what it asks for. So a resume counts once, however often its coordinator is
// started.
//
// It also belongs to a pod, its holder. If its pod has begun a generation, and another pod the
// newest, both may be alive; if both claimed whenever they are started, neither generation would
// last. So it claims nothing before processes have asked it for a place for a while: they ask the
// one to which the address leads. A coordinator whose pod has begun none claims at once.
//
// Blocking. Not thread-safe.

#ifndef SATRAP_DEPLOY_COORDINATOR_CLAIM_GENERATION_CLAIM_H_
#define SATRAP_DEPLOY_COORDINATOR_CLAIM_GENERATION_CLAIM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/run_log.h"
#include "common/file/file_system.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// With a cut every 45 s, 1,000 entries cover half a day. Reading them takes a tenth of a second.
inline constexpr size_t kCompactAfter = 1000;
// At most this many files of the log are removed by one claim. A log from an older build may have
// many files, and a claim must not wait until all are removed.
inline constexpr size_t kRemoveAtOnce = 2000;

struct ClaimRequest {
  // run_dir is the absolute path of the run's folder. All other fields are the job of a new run; a
  // run that continues has its job in the log.
  JobConfig job;
  // Whether somebody resumes the run. Then `job` becomes the next generation's job, and that
  // generation begins from the cut named `from`, which the log must have (NameOfCut,
  // common/checkpoint/cut_identity.h), or from the newest cut if `from` is empty.
  bool next_job = false;
  std::string from;
  // The coordinator's submission; 0: a launcher has started it, and `next_job` says whether it is
  // one more. Otherwise the log decides whether `job` and `from` count.
  uint64_t submission = 0;
  std::string holder;     // the coordinator's pod; empty: a launcher has started it
  bool is_asked = false;  // processes have asked it for a place
  // Whether the newest generation's job cannot be started on this machine, for the reason in
  // `ended`. Then the claim drops the job, as a coordinator does for a failure of that kind
  // (job_trial.h). REQUIRES: not next_job
  bool drops_change = false;
  // How the previous generation ended, if it was lost or failed. May be empty.
  Ending ended;
  uint64_t writer = 0;  // random id of this process; part of its drafts' names
  uint64_t run_id = 0;  // random, not 0; the run's id if the run is new
  int64_t unix_ms = 0;  // the current time
  // Called before anything is written, unless the run has ended. Its errors are returned
  // unchanged, except FAILED_PRECONDITION in pods if the submission has begun. May be null.
  std::function<absl::Status()> check_storage;
  // Called before anything is written, with the job of the next generation, if this claim begins a
  // submission of pods. Its errors are returned unchanged. May be null.
  std::function<absl::Status(const JobConfig& job)> check_files;
  // The log is compacted once it has this many entries since the last compaction.
  size_t compact_after = kCompactAfter;
};

struct ClaimedGeneration {
  explicit ClaimedGeneration(RunLog log) : log(std::move(log)) {}

  RunLog log;
  uint64_t run_id = 0;
  uint64_t generation = 0;
  uint64_t submission = 0;  // of the log
  // A later submission has the run. Nothing is claimed, and all that ask have to wait.
  bool superseded = false;
  // Another pod's coordinator has begun the newest generation. Nothing is claimed before processes
  // ask for a place here.
  bool waits_to_be_asked = false;
  JobConfig job;
  // The cut that all roles begin from; empty if there is none.
  std::string cut_folder;
  RunPosition position;  // that of the cut, adapted to this job (start_position.h)
  LedgerState ledger;
  absl::optional<uint64_t> order_fingerprint;  // that of the cut
  std::string judged_anew;  // the text that BeginFrom (start_position.h) returned; may be empty
  // Left-over files that could not be removed. They only cost disk space.
  std::vector<std::string> warnings;
};

// The job in the file `config`, which a launcher has written, with its run_dir made absolute. Reads
// nothing of that folder. INVALID_ARGUMENT, NOT_FOUND.
absl::StatusOr<JobConfig> ReadJobWithFolder(const std::string& config);
// The same. If the run's log is empty, this is the run's job, and it is validated. Otherwise the
// run's job is in the log, and it was valid for the build that began the run. Other errors are
// those of RunLog::Open.
absl::StatusOr<JobConfig> ReadJobToClaim(const std::string& config, FileSystem* file_system);

// Claims the next generation. Claims none and returns the last one if the run has ended (log.end()
// != null), if another coordinator has the run (superseded, waits_to_be_asked), if the newest entry
// is the cut of a stop, whose END it then appends, and in pods if no restart is left or the cut is
// damaged, which it appends as an END, too. Otherwise removes what earlier generations have left
// uncommitted (folders of cuts, drafts), and compacts the log if that is due. The job is the
// request's if a run begins or is resumed, and otherwise the log's (JobOfNext in job_of_run.h).
// Errors, with nothing claimed:
//   ALREADY_EXISTS, ABORTED  another coordinator has claimed at the same time: start again
//   FAILED_PRECONDITION   more than max_restarts restarts without a cut between them, if submission
//                         is 0; a launcher's resume of a finished run; the log has no cut `from`
//   INVALID_ARGUMENT      next_job changes what must not change (common/config/job_change.h), or
//                         moves the end of training to where training already is (start_position.h)
//   DATA_LOSS             the log or the cut is damaged or missing, or the folder does not hold the
//                         cut that the log names; of the cut only for a launcher, and for a resume
//   INTERNAL              in pods: the storage of a submission that has begun does not do here and
//                         now what it did; the error is marked (common/base/shortage.h)
//   errors of check_storage and check_files
//   others as FileSystem  (after one of these the generation may be claimed; if so, it is over)
absl::StatusOr<ClaimedGeneration> ClaimGeneration(const ClaimRequest& request,
                                                  FileSystem* file_system);

// "generation 3: embedding_ps 1 was killed; generation 4: ...": the causes of the last restarts
// without a cut between them; at most five.
std::string RecentCauses(const RunLog& log);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_CLAIM_GENERATION_CLAIM_H_
