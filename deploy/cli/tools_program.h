// deploy/satrap_tools, the command-line program that has all commands and the kernels of devices.
// It is separate because a first training needs none of them, and they take long to compile.

#ifndef SATRAP_DEPLOY_CLI_TOOLS_PROGRAM_H_
#define SATRAP_DEPLOY_CLI_TOOLS_PROGRAM_H_

#include "absl/status/status.h"

namespace satrap {

// Replaces this program by satrap_tools, with this process's command line. Returns only if it
// cannot: NOT_FOUND if satrap_tools is not built, as FileError otherwise. Files that this program
// holds open with FD_CLOEXEC are closed, and their locks released. REQUIRES: nothing that must be
// kept has been begun
absl::Status BecomeToolsProgram();

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_TOOLS_PROGRAM_H_
