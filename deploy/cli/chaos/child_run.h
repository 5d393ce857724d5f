// Runs a part of a command in a child process, because a process launches only one run
// (launcher.h).
//
// The child has this process's terminal, group and output, and never outlives it. A signal that
// asks this process to stop is passed on to the child, whose end is then awaited. If this process
// is killed, the kernel kills the child, too. On a terminal Ctrl-C reaches the child twice, from
// the key and from its parent, but counts once (stop_signals.h).

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
//   as FileError  there can be no child, or its exit status is not known: "cannot start NAME: ..."
// A signal that comes after the last look for one has its usual effect when this returns.
// REQUIRES: the main thread, and no other one
absl::Status RunInChild(absl::string_view name, absl::FunctionRef<int()> body);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_CHAOS_CHILD_RUN_H_
