// Implements device_need.h in a program without the kernels of devices: the program that has them
// runs the command from its beginning.

#include "deploy/cli/device_need.h"
#include "deploy/cli/tools_program.h"

namespace satrap {

absl::StatusOr<std::string> DeviceNeedOf(const JobConfig& job) {
  if (job.nn_worker().device() == NnWorkerConfig::CPU) return std::string();
  return BecomeToolsProgram();
}

}  // namespace satrap
