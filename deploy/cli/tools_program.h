// The program of the command line that has all commands and the kernels of devices,
// deploy/satrap_tools. It is apart because a first training needs none of them, and they take long
// to compile.

#ifndef SATRAP_DEPLOY_CLI_TOOLS_PROGRAM_H_
#define SATRAP_DEPLOY_CLI_TOOLS_PROGRAM_H_

#include "absl/status/status.h"

namespace satrap {

// Runs it in place of this program, with this process's command line. Returns only if it cannot:
// NOT_FOUND if it is not built, as FileError otherwise. Files that this program holds open with
// FD_CLOEXEC are closed, and their locks given up. REQUIRES: nothing that must be kept has been
// begun
absl::Status BecomeToolsProgram();

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_TOOLS_PROGRAM_H_
