// Where the programs of this build are.

#ifndef SATRAP_DEPLOY_CLI_PROGRAMS_DIR_H_
#define SATRAP_DEPLOY_CLI_PROGRAMS_DIR_H_

#include <string>

#include "absl/status/statusor.h"

namespace satrap {

// DIR, if this program is DIR/deploy/satrap_cli or another program of that folder. The roles'
// programs are in DIR, too, for example DIR/nn_worker/nn_worker. INTERNAL if the kernel does not
// reveal the path.
absl::StatusOr<std::string> ProgramsDir();

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_PROGRAMS_DIR_H_
