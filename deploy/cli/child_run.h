// Runs a part of a command in a process of its own, because a process launches one run only
// (launcher.h).
//
// The child has this process's terminal, group and output, and never outlives it: a signal that
// asks this process to stop is passed on to the child, which is then waited for; if this process is
// killed, so is the child, by the kernel. On a terminal Ctrl-C reaches the child twice, by the key
// and by its parent, and counts once (stop_signals.h).

#ifndef SATRAP_DEPLOY_CLI_CHILD_RUN_H_
#define SATRAP_DEPLOY_CLI_CHILD_RUN_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace satrap {

// Runs `body`, which returns an exit code, in a child process, and waits for its end. CANCELLED,
// "stopped by Interrupt", if a signal asked to stop meanwhile, however the child has ended then;
// ABORTED, "exited with code 1" or "was killed by ...", if the exit code is not 0; errors as
// FileError if there can be no child. REQUIRES: the main thread, and no other one
absl::Status RunInChild(absl::FunctionRef<int()> body);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_CHILD_RUN_H_
