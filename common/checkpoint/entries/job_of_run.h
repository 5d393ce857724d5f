// Which job a run has. A job that was changed, by `satrap scale` or `satrap resume --set`, becomes
// the job of the run once a generation with that job has begun to train. Until then the change is
// on trial: if that generation cannot begin, for a reason that no restart cures, a DROPPED entry
// says so, and the next generation has the job of the last generation that did begin.
//
// Functions that take the entries of a run's log (RunLog::entries) return pointers into them.
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_ENTRIES_JOB_OF_RUN_H_
#define SATRAP_COMMON_CHECKPOINT_ENTRIES_JOB_OF_RUN_H_

#include <vector>

#include "proto/run_log.pb.h"

namespace satrap {

// Whether two jobs are the same, ignoring the path of the run's folder.
bool IsSameJob(JobConfig a, JobConfig b);

// The newest generation that has begun to train; null if none has. A generation has begun to train
// if it has a RUNNING entry or a cut. Older builds wrote no RUNNING entries, so in their logs only
// a cut shows it.
const GenerationEntry* LastThatRan(const std::vector<RunLogEntry>& entries);

// The job change that was dropped, if no generation has been claimed since; otherwise null.
const DroppedEntry* DroppedChange(const std::vector<RunLogEntry>& entries);

// The job of the next generation if nobody changes it; null if no generation was claimed yet.
const JobConfig* JobOfNext(const std::vector<RunLogEntry>& entries);

// The job to go back to if a generation with `job` cannot begin to train: the job of LastThatRan.
// Null if that is the same job (IsSameJob), or if no generation has trained.
const JobConfig* JobToGoBackTo(const std::vector<RunLogEntry>& entries, const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_ENTRIES_JOB_OF_RUN_H_
