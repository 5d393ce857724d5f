// Which job a run has. A job that was changed, by `satrap scale` or `satrap resume --set`, counts
// as the run's once a generation of it has begun to train. Until then it is on trial: if it cannot
// begin, for a reason that no restart cures, a DROPPED entry says so, and the next generation has
// the job of the last one that did.
//
// Those that take the entries of a run's log (RunLog::entries) return pointers into them.
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_JOB_OF_RUN_H_
#define SATRAP_COMMON_CHECKPOINT_JOB_OF_RUN_H_

#include <vector>

#include "proto/run_log.pb.h"

namespace satrap {

// Whether two jobs are the same, wherever the run's folder is.
bool IsSameJob(JobConfig a, JobConfig b);

// The newest generation that has begun to train, as its RUNNING entry or a cut shows; null if none
// has. It is not known of generations without a cut of builds that wrote no RUNNING.
const GenerationEntry* LastThatRan(const std::vector<RunLogEntry>& entries);

// The change of job that was dropped, if no generation was claimed since; else null.
const DroppedEntry* DroppedChange(const std::vector<RunLogEntry>& entries);

// The job of the next generation, if nobody changes it; null if none was claimed yet.
const JobConfig* JobOfNext(const std::vector<RunLogEntry>& entries);

// The job to go back to if one like `job` cannot begin to train: that of LastThatRan if it is
// another one, wherever the run's folder is; else null.
const JobConfig* JobToGoBackTo(const std::vector<RunLogEntry>& entries, const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_JOB_OF_RUN_H_
