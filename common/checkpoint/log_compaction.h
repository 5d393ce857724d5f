// Defines what a COMPACTED entry of a run's log keeps of the entries before it: everything that may
// still be needed.
//
//   topics       all partitions, in their order
//   cuts         those whose folders exist (for `--from`, `checkpoint list` and checks of what a
//                folder holds), and the newest, from which the next generation begins; each with
//                the job of its generation
//   generations  all: why each began, and from which cut
//   jobs         of the newest generation, and of the last that ran (job_of_run.h)
//   complete     the newest generation that had all its members
//   dropped      all changes of the job that were dropped
//   the end      if the run has finished
//
// A cut whose folder is missing when the entry is made is forgotten, even if the folder comes back.
// All entries after the newest cut stay in their order. So the counts of restarts do not change,
// and the run continues from the same place.

#ifndef SATRAP_COMMON_CHECKPOINT_LOG_COMPACTION_H_
#define SATRAP_COMMON_CHECKPOINT_LOG_COMPACTION_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "proto/run_log.pb.h"

namespace satrap {

// `entries` are RunLog::entries, `folders` the names in RUN/checkpoints, and `left_out_cuts` counts
// the cuts that `entries` no longer has. Thread-safe: a function of its arguments.
CompactedEntry Compacted(const std::vector<RunLogEntry>& entries,
                         const std::set<std::string>& folders, uint64_t left_out_cuts);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_LOG_COMPACTION_H_
