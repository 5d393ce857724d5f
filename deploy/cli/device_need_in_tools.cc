// device_need.h for a program without the device kernels. The program that has the kernels runs the
// whole command instead.

#include "deploy/cli/device_need.h"
#include "deploy/cli/tools_program.h"

namespace satrap {

absl::StatusOr<std::string> DeviceNeedOf(const JobConfig& job) {
  if (job.nn_worker().device() == NnWorkerConfig::CPU) return std::string();
  return BecomeToolsProgram();
}

}  // namespace satrap
