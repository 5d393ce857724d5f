// deploy/satrap_tools, the command-line program that has all commands and the kernels of devices.
// It is a separate program because its additions to deploy/satrap_cli take long to compile, and a
// first training needs none of them.

#ifndef SATRAP_DEPLOY_CLI_TOOLS_PROGRAM_H_
#define SATRAP_DEPLOY_CLI_TOOLS_PROGRAM_H_

#include "absl/status/status.h"

namespace satrap {

// Replaces this program by satrap_tools, with the same command line. Returns only on failure:
// NOT_FOUND if satrap_tools is not built, otherwise the errors of FileError. Closes the files that
// this program has opened with FD_CLOEXEC, and so releases their locks. REQUIRES: this process has
// not begun any work that must continue
absl::Status BecomeToolsProgram();

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_TOOLS_PROGRAM_H_
