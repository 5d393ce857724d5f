#include "nn_worker/rank_backend.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/score_on_cpu.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"
#include "nn_worker/backend/cpu/cpu_job_backend.h"
#include "nn_worker/backend/device/device_room.h"
#include "nn_worker/collective/job_reduction.h"
#include "nn_worker/graph/precision.h"
#include "nn_worker/trainer/memory_plan/device_plan.h"

namespace satrap {
namespace {

// The device memory that this rank needs.
absl::StatusOr<DeviceNeed> PlannedNeed(const RoleRuntime& runtime, const DeviceProgram& devices) {
  const JobConfig& job = runtime.job();
  ASSIGN_OR_RETURN(const DevicePlan plan, devices.Plan(job));
  RETURN_IF_ERROR(CheckDevicePlan(plan, job.nn_worker()));
  runtime.logger().Info("trains on a device",
                        {{"device", NnWorkerConfig::Device_Name(job.nn_worker().device())},
                         {"memory", DevicePlanText(plan)}});
  return NeedOf(plan);
}

absl::StatusOr<JobBackend> MakeDeviceBackend(const RoleRuntime& runtime,
                                             const DeviceProgram* devices, int card) {
  const NnWorkerConfig& config = runtime.job().nn_worker();
  if (devices == nullptr) {
    const std::string device = NnWorkerConfig::Device_Name(config.device());
    return absl::FailedPreconditionError(
        absl::StrCat("nn_worker.device is ", device, ", but this program is for CPU alone: run ",
                     config.device() == NnWorkerConfig::CUDA ? "nn_worker_cuda" : "nn_worker_host",
                     " in place of nn_worker"));
  }
  ASSIGN_OR_RETURN(const DeviceNeed need, PlannedNeed(runtime, *devices));
  return devices->NewBackend(config, card, need);
}

}  // namespace

void LogProducts(const RoleRuntime& runtime) {
  const NnWorkerConfig& config = runtime.job().nn_worker();
  if (config.device() != NnWorkerConfig::CPU || DTypeOf(config.precision()) == DType::kF32) return;
  const HalfProductsChoice choice =
      config.precision() == NnWorkerConfig::BF16 ? FastestHalfProducts() : HalfProductsChoice();
  if (!choice.because.empty()) {
    runtime.logger().Warning("multiplies BF16 values without AMX", {{"because", choice.because}});
  }
  switch (choice.products) {
    case HalfProducts::kAmxBf16:
      return runtime.logger().Info("multiplies BF16 values with AMX");
    case HalfProducts::kAvx512Bf16:
      return runtime.logger().Info("multiplies BF16 values with AVX512_BF16");
    case HalfProducts::kF32:
      return runtime.logger().Info(
          "rounds values to 16 bits and multiplies them in f32, which is slower than precision F32",
          {{"precision", NnWorkerConfig::Precision_Name(config.precision())}});
  }
}

absl::StatusOr<JobBackend> MakeRankBackend(const RoleRuntime& runtime, const DeviceProgram* devices,
                                           int card, ForkJoinPool* pool) {
  const JobConfig& job = runtime.job();
  JobBackend on_cpu;
  if (job.nn_worker().device() == NnWorkerConfig::CPU) {
    on_cpu.backend = NewCpuJobBackend(job.nn_worker(), pool);
    return on_cpu;
  }
  absl::StatusOr<JobBackend> made = MakeDeviceBackend(runtime, devices, card);
  if (!made.ok()) return SuggestScoringOnCpu(made.status(), job);
  if (SumsOnDevices(job)) {
    const absl::Status sums = devices->CheckReduction();
    if (!sums.ok()) return SuggestGloo(sums);
  }
  return made;
}

}  // namespace satrap
