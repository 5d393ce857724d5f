// Runs a part of a command in a process of its own, because a process launches one run only
// (launcher.h).
//
// The child has this process's terminal, group and output, and never outlives it: a signal that
// asks this process to stop is passed on to the child, which is then waited for; if this process is
// killed, so is the child, by the kernel. On a terminal Ctrl-C reaches the child twice, by the key
// and by its parent, and counts once (stop_signals.h).

#ifndef SATRAP_DEPLOY_CLI_CHAOS_CHILD_RUN_H_
#define SATRAP_DEPLOY_CLI_CHAOS_CHILD_RUN_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace satrap {

// Runs `body`, which returns an exit code, in a child process, and waits for its end. `name` says
// in errors what the child does: "the undisturbed run in runs/a". A `body` that returns 1 has
// printed why.
//   CANCELLED     a signal asked to stop meanwhile: "NAME was stopped by Interrupt", or, if the
//                 exit code is 0 all the same, "stopped by Interrupt after NAME had ended"
//   ABORTED       "NAME has failed; its messages are above" (exit code 1), "NAME exited with code
//                 7", "NAME was killed by signal 9 (Killed)"
//   as FileError  there can be no child, or nobody can say how it ended: "cannot start NAME: ..."
// A signal that comes after the last look for one has its usual effect when this returns.
// REQUIRES: the main thread, and no other one
absl::Status RunInChild(absl::string_view name, absl::FunctionRef<int()> body);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_CHAOS_CHILD_RUN_H_
