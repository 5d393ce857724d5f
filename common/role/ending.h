// How a process of a run reports its end (Ending, proto/control.proto): what the Ending says, the
// exit code, and the file that the process leaves for whoever started it.
//
// The exit code says whose failure it was, and whether to start the process again:
//
//   75  its own failure, or the end of its coordinator; start again
//   76  an echo of another process's failure; start again
//   1   its own failure; the run has failed
//   77  an echo of another process's failure; the run has failed
//
// The code is a hint: a launcher that does not know 76 and 77 treats them as 75 and 1. A process
// that was asked to stop, or whose run has finished or stopped, exits with 0. The coordinator exits
// with 75 or 1.
//
// A process with --ending=PATH writes its Ending there before it exits, even if an exception ends
// it (process_end.h). The file appears as a whole, because it is written under another name first.
// After a signal or a failed CHECK there is no file. So the file that a process left must be
// removed before the next process is started.
//
// Thread-safe: the functions depend only on their arguments and on the file.

#ifndef SATRAP_COMMON_ROLE_ENDING_H_
#define SATRAP_COMMON_ROLE_ENDING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/control.pb.h"

namespace satrap {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitStartAgain = 75;
inline constexpr int kExitEchoStartAgain = 76;
inline constexpr int kExitEchoFailed = 77;

// An ending that was not caused by the failure of a process.
Ending EndingOf(Ending::Why why, absl::string_view text);
// An ending whose origin is the process `index` of `role`.
Ending EndingOf(Ending::Why why, Role role, int index, absl::string_view text);
// The ending by an error of the process `index` of `role`: MEMBER_FAILED, with the kind
// (cause_table.h) and the advice that belong to the error.
Ending FailureOf(Role role, int index, const absl::Status& error);

// Whether the process `index` of `role` is the ending's origin.
bool IsOf(const Ending& ending, Role role, int index);

// The exit code of the process `index` of `role`, whose run or generation has ended in `state` with
// `ending`.
int ExitCodeOf(RunState state, const Ending& ending, Role role, int index);

// Writes the file. Does nothing if `path` is empty. Ignores errors, because the exit code tells the
// most important part.
void LeaveEnding(const std::string& path, const Ending& ending);

// Reads what LeaveEnding wrote. Nullopt if there is no file, or this build cannot read it.
absl::optional<Ending> ReadEnding(const std::string& path);

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_ENDING_H_
