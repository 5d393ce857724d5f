#include "common/config/validate/validate_job.h"

#include <cmath>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/config/candidates.h"
#include "common/config/data_streams.h"
#include "common/config/field_path.h"
#include "common/config/setting_ranges.h"
#include "common/config/setting_rules.h"
#include "common/config/tasks.h"

namespace satrap {
namespace {

// Whether the device supports the precision.
bool HasPrecision(NnWorkerConfig::Device device, NnWorkerConfig::Precision precision) {
  return precision != NnWorkerConfig::TF32 || device == NnWorkerConfig::CUDA;
}

void ValidateDevice(const JobConfig& job, Problems* problems) {
  const NnWorkerConfig& nn_worker = job.nn_worker();
  const bool on_cpu = nn_worker.device() == NnWorkerConfig::CPU;
  const std::string device = NnWorkerConfig::Device_Name(nn_worker.device());
  if (on_cpu && nn_worker.device_memory_bytes() != 0) {
    problems->Add("nn_worker.device_memory_bytes",
                  "is for nn_worker.device CUDA and HOST only, got CPU");
  }
  if (on_cpu && !nn_worker.graph_capture()) {
    problems->Add("nn_worker.graph_capture", "is for nn_worker.device CUDA and HOST only, got CPU");
  }
  if (!HasPrecision(nn_worker.device(), nn_worker.precision())) {
    problems->Add("nn_worker.precision",
                  absl::StrCat("must be F32, BF16 or F16 with nn_worker.device ", device, ", got ",
                               NnWorkerConfig::Precision_Name(nn_worker.precision()),
                               ", which only a GPU supports"));
  }
  if (nn_worker.gradient_sums() == NnWorkerConfig::NCCL &&
      nn_worker.device() != NnWorkerConfig::CUDA) {
    problems->Add("nn_worker.gradient_sums",
                  absl::StrCat("must be AUTO or GLOO with nn_worker.device ", device,
                               ", got NCCL, which works on GPUs only"));
  }
  if (nn_worker.gradient_sums() == NnWorkerConfig::NCCL && nn_worker.replicas() > 1 &&
      job.reproducible()) {
    problems->Add("nn_worker.gradient_sums",
                  "must be AUTO or GLOO with reproducible and several NN workers, got NCCL, which "
                  "may add in another order in each run");
  }
  // The gradients of drawn candidates are added to those of the samples' own rows, but the kernel
  // that does so needs features with the same number of samples.
  if (!on_cpu && job.model().candidates().count() > 0) {
    problems->Add("nn_worker.device",
                  absl::StrCat("must be CPU with model.candidates.count above 0, got ", device));
  }
}

void ValidatePrecision(const JobConfig& job, Problems* problems) {
  const NnWorkerConfig& nn_worker = job.nn_worker();
  const std::string precision = NnWorkerConfig::Precision_Name(nn_worker.precision());
  if (nn_worker.precision() != NnWorkerConfig::F16) {
    if (nn_worker.has_loss_scale()) {
      problems->Add("nn_worker.loss_scale",
                    absl::StrCat("is for nn_worker.precision F16 only, got ", precision));
    }
    return;
  }
  int exponent;
  const double initial = nn_worker.loss_scale().initial();
  if (std::frexp(initial, &exponent) != 0.5) {
    problems->Add("nn_worker.loss_scale.initial",
                  absl::StrCat("must be a power of two, got ", initial));
  }
  // The gradient of a tally does not come from the loss, so it is not scaled. Dividing it by the
  // loss scale would change it.
  for (int i = 0; i < job.model().layers_size(); ++i) {
    if (!job.model().layers(i).has_tally()) continue;
    problems->Add(absl::StrCat("model.layers", LayerSelector(job.model(), i), ".tally"),
                  "its gradient would not survive the loss scale of nn_worker.precision F16: use "
                  "F32 or BF16");
  }
}

void ValidateModes(const JobConfig& job, Problems* problems) {
  // The name of the run's folder begins with the job's name.
  if (absl::StrContains(job.name(), '/')) {
    problems->Add("name", absl::StrCat("must not hold a '/', got '", job.name(), "'"));
  }
  if (job.reproducible() && job.mode() != JobConfig::SYNC) {
    problems->Add("reproducible", "needs mode SYNC, got HYBRID");
  }
  // The norm is that of all gradients of a step, but in HYBRID the parts of a step are applied one
  // by one.
  if (job.gradient_clip_norm() > 0 && job.mode() != JobConfig::SYNC) {
    problems->Add("gradient_clip_norm", "needs mode SYNC, got HYBRID");
  }
  // Validations affect the result of a run: they decide which cut is the best, when `patience` ends
  // the run, and when learning rates fall.
  if (job.reproducible() && job.evaluation().every_seconds() > 0) {
    problems->Add("evaluation.every_seconds",
                  absl::StrCat("must be 0 with reproducible, because the clock would choose the "
                               "steps (use every_steps instead), got ",
                               job.evaluation().every_seconds()));
  }
  if (job.mode() == JobConfig::SYNC && job.lanes() < job.data_loader().replicas()) {
    problems->Add("lanes",
                  absl::StrCat("must be at least data_loader.replicas (",
                               job.data_loader().replicas(), ") in mode SYNC, got ", job.lanes()));
  }
  if (job.global_batch_size() < job.nn_worker().replicas()) {
    problems->Add("global_batch_size",
                  absl::StrCat("must be at least nn_worker.replicas (", job.nn_worker().replicas(),
                               "), got ", job.global_batch_size()));
  }
}

void ValidateReduceOnPlateau(const JobConfig& job, Problems* problems) {
  if (!job.evaluation().has_reduce_on_plateau()) return;
  if (job.action() == JobConfig::TRAIN && !HasValidData(job.data())) {
    problems->Add("evaluation.reduce_on_plateau", "needs validation data");
  }
}

void ValidateWarmStart(const JobConfig& job, Problems* problems) {
  if (!job.has_warm_start()) return;
  if (!job.has_init_from()) problems->Add("warm_start", "needs init_from");
  for (int i = 0; i < job.warm_start().only_size(); ++i) {
    if (!job.warm_start().only(i).empty()) continue;
    problems->Add(absl::StrCat("warm_start.only[", i, "]"), "must not be empty");
  }
}

void ValidateBatchScaling(const JobConfig& job, Problems* problems) {
  if (!job.has_batch_scaling()) return;
  const BatchScalingConfig& scaling = job.batch_scaling();
  if (scaling.dense_warmup_samples() > 0 &&
      job.dense_optimizer().learning_rate_schedule().warmup_steps() > 0) {
    problems->Add(
        "batch_scaling.dense_warmup_samples",
        absl::StrCat("must be 0 with dense_optimizer.learning_rate_schedule.warmup_steps, "
                     "got ",
                     scaling.dense_warmup_samples()));
  }
}

// Checks only what is visible without building the network. The network itself checks inputs and
// shapes.
void ValidateModel(const JobConfig& job, Problems* problems) {
  const ModelConfig& model = job.model();
  if (model.layers_size() == 0) {
    problems->Add("model.layers", "must not be empty unless model.zoo is set");
  }
  absl::flat_hash_set<std::string> names;
  for (int i = 0; i < model.layers_size(); ++i) {
    const LayerConfig& layer = model.layers(i);
    const std::string path = absl::StrCat("model.layers", LayerSelector(model, i));
    if (layer.name().empty()) problems->Add(path, "has no name");
    if (!names.insert(layer.name()).second) {
      problems->Add(path, absl::StrCat("the name '", layer.name(), "' is taken"));
    }
    if (layer.kind_case() == LayerConfig::KIND_NOT_SET) problems->Add(path, "has no kind");
    if (layer.inputs_size() == 0) problems->Add(path, "has no inputs");
  }
}

// The network itself checks that the layers of predict_outputs exist.
void ValidatePrediction(const JobConfig& job, Problems* problems) {
  if (job.action() != JobConfig::TRAIN && !job.has_init_from()) {
    problems->Add("init_from", "is needed to evaluate or predict");
  }
  if (job.action() != JobConfig::PREDICT && job.predict_outputs_size() > 0) {
    problems->Add("predict_outputs", "may be set only by satrap predict --output LAYER");
  }
}

}  // namespace

Problems ProblemsOfJob(const JobConfig& job) {
  Problems problems;
  CheckRanges(job, "", &problems);
  ValidateModes(job, &problems);
  ValidateReduceOnPlateau(job, &problems);
  ValidateWarmStart(job, &problems);
  ValidateDevice(job, &problems);
  ValidatePrecision(job, &problems);
  ValidateData(job, &problems);
  ValidateTables(job, &problems);
  ValidateModel(job, &problems);
  ValidateTasks(job, &problems);
  ValidateCandidates(job, &problems);
  CheckRules(job.dense_optimizer(), "dense_optimizer.", &problems);
  ValidateBatchScaling(job, &problems);
  ValidatePrediction(job, &problems);
  ValidateKubernetes(job, &problems);
  return problems;
}

absl::Status ValidateJob(const JobConfig& job) { return ProblemsOfJob(job).ToStatus(); }

}  // namespace satrap
