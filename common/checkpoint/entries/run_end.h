// How a run has ended, and which of its submissions its log is at.
//
// `satrap train` is submission 1 of a run, and each `satrap resume` is one more. A submission ends
// with an entry END: the run has finished, was stopped or has failed. Nobody is told of the end
// before the entry is linked, except a launcher, which is told after 10 s if the log does not take
// the entry. No generation of that submission follows the entry.
//
// Functions that take the entries of a run's log (RunLog::entries) return pointers into them.
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_ENTRIES_RUN_END_H_
#define SATRAP_COMMON_CHECKPOINT_ENTRIES_RUN_END_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "proto/run_log.pb.h"

namespace satrap {

// FINISHED, STOPPED or FAILED. Older builds wrote END only for FINISHED, and without a state.
RunState StateOf(const EndEntry& end);

// The newest END; null if there is none, or if a generation was claimed since.
const EndEntry* EndOf(const std::vector<RunLogEntry>& entries);
// Whether the run has finished. If so, no submission can follow.
bool HasFinished(const std::vector<RunLogEntry>& entries);

// The submission that a generation belongs to. Entries of older builds count as 1.
uint64_t SubmissionOfGeneration(const GenerationEntry& generation);
// The submission of the newest GENERATION; 0 if there is none.
uint64_t SubmissionOf(const std::vector<RunLogEntry>& entries);

// The newest entry, if it is a generation's last cut and was taken for the purpose `what`;
// otherwise null. After a cut for STOP only the submission's END may follow.
const CutEntry* LeftFor(const std::vector<RunLogEntry>& entries, CutEntry::LeftFor what);

// Whether the newest generation has ended because one of its processes moved. The newest entry
// shows that: it is LEFT, or a last cut for MOVE. The next generation does not count as a restart
// after a failure.
bool HasMoved(const std::vector<RunLogEntry>& entries);

// The ending of a run that was stopped and whose last cut is `cut`.
Ending StoppedAfter(const CutEntry& cut);

// For people: why a generation began, such as "resume" or "moved: PROCESS leaves its machine", or
// how the one before it ended.
std::string CauseText(const GenerationEntry& entry);

// The generations after the first, each with the step of the cut that it began from. A generation
// that is only announced, for a change of size, is left out, because the generation that then
// begins has an entry of its own.
std::vector<Restart> RestartsIn(const std::vector<RunLogEntry>& entries);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_ENTRIES_RUN_END_H_
