#include "nn_worker/trainer/memory_plan/device_plan.h"

#include "absl/strings/str_cat.h"
#include "common/learning_rate/batch_scaling.h"
#include "nn_worker/graph/precision.h"

namespace satrap {

NetworkOptions NetworkOptionsOf(const JobConfig& job, const PartLayout& layout,
                                const RunPosition& position) {
  NetworkOptions options;
  options.model = job.model();
  options.inputs = layout.inputs;
  options.trains = job.action() == JobConfig::TRAIN;
  options.outputs.assign(job.predict_outputs().begin(), job.predict_outputs().end());
  options.optimizer = EffectiveDenseOptimizer(job);
  options.seed = job.seed();
  options.max_samples = MaxSamplesOfPart(job);
  options.min_full_samples = MinSamplesOfFullPart(job);
  options.dtype = DTypeOf(job.nn_worker().precision());
  options.gradient_scale = GradientScaleOf(job, position);
  options.graph_capture = job.nn_worker().graph_capture();
  return options;
}

absl::Status CheckDevicePlan(const DevicePlan& plan, const NnWorkerConfig& config) {
  if (config.device_memory_bytes() == 0 || plan.total() <= config.device_memory_bytes()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("nn_worker.device_memory_bytes is ", config.device_memory_bytes(),
                   ", but each NN worker needs ", DevicePlanText(plan),
                   ": raise it, or use a smaller global_batch_size, more NN workers or a smaller "
                   "model"));
}

std::string DevicePlanText(const DevicePlan& plan) {
  return absl::StrCat(plan.total(), " bytes of device memory (network ", plan.network,
                      ", embeddings ", plan.embeddings, ", scratch ", plan.scratch, ", lists ",
                      plan.lists + plan.part_lists, ")");
}

DeviceNeed NeedOf(const DevicePlan& plan) {
  DeviceNeed need;
  need.bytes = plan.total();
  need.text = DevicePlanText(plan);
  need.scratch_bytes = plan.scratch;
  need.list_bytes = plan.lists;
  need.part_list_bytes = plan.part_lists;
  return need;
}

}  // namespace satrap
