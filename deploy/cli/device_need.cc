#include "deploy/cli/device_need.h"

#include "common/base/status_macros.h"
#include "nn_worker/trainer/device_rehearsal.h"
#include "nn_worker/trainer/memory_plan/device_plan.h"

namespace satrap {

absl::StatusOr<std::string> DeviceNeedOf(const JobConfig& job) {
  if (job.nn_worker().device() == NnWorkerConfig::CPU) return std::string();
  ASSIGN_OR_RETURN(const DevicePlan plan, PlanDevice(job));
  RETURN_IF_ERROR(CheckDevicePlan(plan, job.nn_worker()));
  return DevicePlanText(plan);
}

}  // namespace satrap
