// Claims a generation, which is the first thing that a coordinator does, before it serves anybody.
// The claim reads the log of the run (common/checkpoint/run_log.h), chooses the job and the cut
// that the generation begins from, and appends a GENERATION entry. If several coordinators claim at
// the same time, only one of them gets the generation.
//
// A coordinator in a pod belongs to a submission (common/checkpoint/entries/run_end.h). It compares
// the number of its submission with the newest number in the log. If its number is smaller, it
// never claims anything. If the numbers are equal, it continues with the log's job or, if the log
// has the submission's end, serves that end. If its number is greater, it claims the generation
// that it was started for. So a resume takes effect once, however often its coordinator is started.
//
// A coordinator in a pod also has a holder, which is the pod. If this pod has begun a generation
// but another pod has begun the newest one, both pods may be alive. If both claimed a generation
// whenever they are started, no generation would last. So the coordinator claims nothing until
// processes have asked it for a place for a while; they ask the coordinator to which the address
// leads. A coordinator whose pod has not begun any generation claims one at once.
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
  // The number of the coordinator's submission. 0: a launcher has started the coordinator, and
  // `next_job` says whether a new submission begins. Otherwise the log decides whether `job` and
  // `from` are used.
  uint64_t submission = 0;
  std::string holder;     // the coordinator's pod; empty: a launcher has started it
  bool is_asked = false;  // processes have asked it for a place
  // Whether the newest generation's job cannot be started on this machine, for the reason in
  // `ended`. If so, the claim drops the job, as a coordinator does after a failure of that kind
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
  // submission of pods. The job has no init_from if the generation begins from a cut. Its errors
  // are returned unchanged. May be null.
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
  // A later submission has taken over the run. Nothing is claimed, and every process that asks for
  // a place has to wait.
  bool superseded = false;
  // Another pod's coordinator has begun the newest generation. Nothing is claimed until processes
  // ask this coordinator for a place.
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
// Like ReadJobWithFolder, but also looks into the run's log. If the log is empty, the job in the
// file becomes the run's job, so it is validated. Otherwise the run's job is in the log, and was
// valid for the build that began the run. Other errors are those of RunLog::Open.
absl::StatusOr<JobConfig> ReadJobToClaim(const std::string& config, FileSystem* file_system);

// Claims the next generation and returns it, except in these cases, in which it claims nothing and
// returns the last generation:
// - The run has ended (log.end() != null).
// - Another coordinator has the run (superseded, waits_to_be_asked).
// - The newest entry is the cut of a stop. The missing END is then appended.
// - In pods: no restart is left, or the cut is damaged. An END that says so is then appended.
//
// A claim also removes what earlier generations have left uncommitted (folders of cuts, drafts),
// and compacts the log if that is due. The job is the request's if a run begins or is resumed, and
// otherwise the log's (JobOfNext in job_of_run.h). Errors, with nothing claimed:
//   ALREADY_EXISTS, ABORTED  another coordinator has claimed at the same time: start again
//   FAILED_PRECONDITION   more than max_restarts restarts without a cut between them, if submission
//                         is 0; a launcher's resume of a finished run; the log has no cut `from`
//   INVALID_ARGUMENT      next_job changes what must not change (common/config/job_change.h), or
//                         moves the end of training to where training already is (start_position.h)
//   DATA_LOSS             the log is damaged or missing. For a launcher or a resume also: the cut
//                         is damaged or missing, or its folder does not hold the cut that the
//                         log names
//   INTERNAL              in pods: the submission has begun, but its storage now fails a check that
//                         it passed before; the error is marked (common/base/shortage.h)
//   errors of check_storage and check_files
//   errors of FileSystem  (the generation may have been claimed nevertheless; then it is over)
absl::StatusOr<ClaimedGeneration> ClaimGeneration(const ClaimRequest& request,
                                                  FileSystem* file_system);

// "generation 3: embedding_ps 1 was killed; generation 4: ...": the causes of the last restarts
// without a cut between them; at most five.
std::string RecentCauses(const RunLog& log);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_CLAIM_GENERATION_CLAIM_H_
