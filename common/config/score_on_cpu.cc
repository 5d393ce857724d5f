#include "common/config/score_on_cpu.h"

#include "absl/strings/str_cat.h"

namespace satrap {

absl::Status SuggestScoringOnCpu(const absl::Status& error, const JobConfig& job) {
  const NnWorkerConfig& nn_worker = job.nn_worker();
  if (job.action() == JobConfig::TRAIN || nn_worker.device() != NnWorkerConfig::CUDA) return error;
  std::string message =
      absl::StrCat(error.message(), "; or score on the CPU: --set nn_worker.device=CPU");
  // Values of settings that the CPU does not support.
  if (nn_worker.precision() == NnWorkerConfig::TF32) {
    absl::StrAppend(&message, " --set nn_worker.precision=F32");
  }
  if (nn_worker.device_memory_bytes() != 0) {
    absl::StrAppend(&message, " --set nn_worker.device_memory_bytes=0");
  }
  if (nn_worker.gradient_sums() == NnWorkerConfig::NCCL) {
    absl::StrAppend(&message, " --set nn_worker.gradient_sums=AUTO");
  }
  if (!nn_worker.graph_capture()) {
    absl::StrAppend(&message, " --set nn_worker.graph_capture=true");
  }
  return absl::Status(error.code(), message);
}

}  // namespace satrap
