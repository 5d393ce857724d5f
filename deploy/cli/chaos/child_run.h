// Runs a part of a command in a child process, because a process can launch only one run
// (launcher.h).
//
// The child has this process's terminal, process group and output, and never outlives it. A signal
// that asks this process to stop is passed on to the child, and this process then waits for the
// child's end. If this process is killed, the kernel kills the child, too. Ctrl-C on a terminal
// reaches the child twice, from the terminal and from its parent, but counts once (stop_signals.h).

#ifndef SATRAP_DEPLOY_CLI_CHAOS_CHILD_RUN_H_
#define SATRAP_DEPLOY_CLI_CHAOS_CHILD_RUN_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace satrap {

// Runs `body`, which returns an exit code, in a child process, and waits for its end. `name`
// describes in error messages what the child does: "the undisturbed run in runs/a". A `body` that
// returns 1 must have printed the reason.
//   CANCELLED     a signal asked to stop meanwhile: "NAME was stopped by Interrupt", or, if the
//                 exit code is 0 nevertheless, "stopped by Interrupt after NAME had ended"
//   ABORTED       "NAME has failed; its messages are above" (exit code 1), "NAME exited with code
//                 7", "NAME was killed by signal 9 (Killed)"
//   as FileError  the child cannot be started or watched, or its exit status cannot be read:
//                 "cannot start NAME: ..."
// A signal that arrives too late for this function has its usual effect once the function returns.
// REQUIRES: called on the main thread, and no other thread exists
absl::Status RunInChild(absl::string_view name, absl::FunctionRef<int()> body);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_CHAOS_CHILD_RUN_H_
