#include "deploy/cli/job_preparation.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/saved_features.h"
#include "common/config/data_streams.h"
#include "common/config/job_config.h"
#include "common/config/label_targets.h"
#include "common/config/tasks.h"
#include "data_loader/source/split_list.h"
#include "deploy/cli/device_need.h"
#include "deploy/launcher/process/run_folder.h"
#include "nn_worker/graph/model/graph_builder.h"
#include "nn_worker/graph/model/graph_inputs.h"
#include "nn_worker/graph/model/output_model.h"
#include "nn_worker/graph/parameter_ranges.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> FilesOf(const DataConfig& data) {
  std::vector<std::string> files(data.train_files().begin(), data.train_files().end());
  files.insert(files.end(), data.valid_files().begin(), data.valid_files().end());
  files.insert(files.end(), data.test_files().begin(), data.test_files().end());
  return files;
}

// If a job does not say where its files are, uses the folder of the job. Returns whether it did.
bool TakeFolderOfJob(const std::string& path, JobConfig* job) {
  const std::vector<std::string> files = FilesOf(job->data());
  if (!job->data_root().empty() ||
      std::all_of(files.begin(), files.end(),
                  [](const std::string& file) { return absl::StartsWith(file, "/"); })) {
    return false;
  }
  const fs::path folder = fs::path(path).parent_path();
  job->set_data_root(folder.empty() ? "." : folder.string());
  return true;
}

absl::Status CheckData(const JobConfig& job, bool is_beside_job) {
  const absl::Status found = CheckFilesOfJob(job);
  if (!absl::IsNotFound(found) || !is_beside_job) return found;
  return absl::NotFoundError(absl::StrCat(
      found.message(),
      "\nthe job does not say where its files are, so they were looked for in the folder of the "
      "job file; to name another folder, use --set data_root=DIR"));
}

// A run that began with older record rules keeps them, so its classes are not checked.
absl::Status CheckClassesAreKnown(const JobConfig& job, const Graph& graph) {
  if (job.data().record_rules() < 2 && !job.data().has_kafka()) return absl::OkStatus();
  const std::vector<ModelTask> tasks = TasksOf(job);
  for (size_t t = 0; t < tasks.size(); ++t) {
    const TaskConfig::Loss kind = tasks[t].loss;
    if (kind != TaskConfig::SOFTMAX_CROSS_ENTROPY) continue;
    RETURN_IF_ERROR(CheckClasses(tasks[t].output, ClassesOf(job, tasks[t].output),
                                 graph.tensors[graph.outputs[t]].shape[0]));
  }
  return absl::OkStatus();
}

bool IsAbsolute(const std::string& path) { return absl::StartsWith(path, "/"); }

// Whether the path is the folder or is below it, after `..` is resolved.
bool IsBelow(const std::string& path, const std::string& folder) {
  const std::string normal = fs::path(path).lexically_normal().string();
  return normal == folder || absl::StartsWith(normal, folder + "/");
}

// Checks that the path is below a mount of the pods. A job without the section `kubernetes` mounts
// nothing, but passes here, because another check refuses it.
absl::Status CheckIsMounted(absl::string_view field, absl::string_view what,
                            const std::string& path, const JobConfig& job) {
  const KubernetesConfig& config = job.kubernetes();
  bool is_mounted = IsAbsolute(path) && !job.has_kubernetes();
  for (const KubernetesVolume& volume : config.volumes()) {
    is_mounted = is_mounted || IsBelow(path, volume.mount_path());
  }
  for (const KubernetesSecret& secret : config.secrets()) {
    is_mounted = is_mounted || IsBelow(path, secret.mount_path());
  }
  if (is_mounted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": must be the path at which the pods find ", what,
      ", below the mount_path of a volume or secret of `kubernetes`, got '", path, "'"));
}

absl::Status CheckSettingOfPods(const KafkaSetting& setting, const JobConfig& job) {
  constexpr absl::string_view kVariable = "env:";
  constexpr absl::string_view kFile = "file:";
  absl::string_view value = setting.value();
  const std::string field = absl::StrCat("setting ", setting.name(), " of topics");
  if (absl::StartsWith(value, kVariable)) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, ": pods have no variables, got '", value,
        "': put the value into a Secret, mount the Secret with kubernetes.secrets, and "
        "name its file with file:PATH"));
  }
  if (!absl::ConsumePrefix(&value, kFile)) return absl::OkStatus();
  return CheckIsMounted(field, "the file", std::string(value), job);
}

// Refuses what works on this machine but not in pods.
absl::Status CheckWorksInPods(const JobConfig& job) {
  if (job.action() != JobConfig::TRAIN) {
    return absl::InvalidArgumentError(
        absl::StrCat("action: pods only train, got ", JobConfig::Action_Name(job.action())));
  }
  if (job.nn_worker().device() == NnWorkerConfig::HOST) {
    return absl::InvalidArgumentError(
        "nn_worker.device: images do not contain the program for HOST; pods need CPU or CUDA");
  }
  for (const KafkaConfig* kafka :
       {&job.data().kafka(), &job.data().valid_kafka(), &job.data().test_kafka()}) {
    for (const KafkaSetting& setting : kafka->settings()) {
      RETURN_IF_ERROR(CheckSettingOfPods(setting, job));
    }
  }
  return absl::OkStatus();
}

// Without this check every NN worker would refuse the job later, for the same reason.
absl::Status CheckModel(const JobConfig& job) {
  const GraphInputs inputs = MakePartLayout(job).inputs;
  ASSIGN_OR_RETURN(const Graph graph, BuildGraph(job.model(), inputs));
  RETURN_IF_ERROR(CheckParameterPatterns(graph, job.dense_optimizer()));
  RETURN_IF_ERROR(CheckClassesAreKnown(job, graph));
  if (job.predict_outputs().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ModelConfig model,
                   ModelOfOutputs(job.model(), inputs,
                                  {job.predict_outputs().begin(), job.predict_outputs().end()}));
  return BuildGraph(model, inputs, DType::kF32, GraphUse::kOutputs).status();
}

}  // namespace

absl::Status CheckClasses(const std::string& output, absl::optional<int64_t> of_loaders,
                          int64_t of_network) {
  if (of_loaders == of_network) return absl::OkStatus();
  constexpr char kCure[] = "make it a layer `linear` with as many units as there are classes";
  if (!of_loaders.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model: loaders cannot derive the number of classes of output \"", output,
                     "\" from the job: ", kCure));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "model: output \"", output, "\" has ", of_network, " classes, but loaders derive ",
      *of_loaders,
      " from the job, and would decide by that number which records to leave out: ", kCure));
}

std::vector<std::string> RowsAsIn(const JobConfig& trained) {
  std::vector<std::string> rules;
  for (const TextRule& rule : TextRules()) {
    if (rule.is_open(trained.data())) rules.push_back(absl::StrCat(rule.field, "=", rule.older));
  }
  return rules;
}

void MakeDataRootAbsolute(JobConfig* job) {
  if (job->data_root().empty()) return;
  // With a slash at the end, the path has an empty last component; drop it.
  const fs::path root = fs::absolute(job->data_root()).lexically_normal();
  job->set_data_root((root.has_filename() ? root : root.parent_path()).string());
}

absl::StatusOr<JobConfig> PrepareJob(const std::string& path, const std::vector<std::string>& sets,
                                     const std::string& install_dir, std::string* device_need) {
  ASSIGN_OR_RETURN(JobConfig job, LoadJob(path, sets, install_dir));
  const bool is_beside_job = TakeFolderOfJob(path, &job);
  MakeDataRootAbsolute(&job);
  if (!job.init_from().empty()) {
    ASSIGN_OR_RETURN(const std::string model, FindModel(job.init_from()));
    job.set_init_from(model);
  }
  RETURN_IF_ERROR(CheckModel(job));
  RETURN_IF_ERROR(CheckData(job, is_beside_job));
  ASSIGN_OR_RETURN(std::string need, DeviceNeedOf(job));
  if (device_need != nullptr) *device_need = std::move(need);
  return job;
}

absl::StatusOr<JobConfig> PrepareJobOfPods(const std::string& path,
                                           const std::vector<std::string>& sets,
                                           const std::string& install_dir) {
  ASSIGN_OR_RETURN(JobConfig job, LoadJob(path, sets, install_dir));
  RETURN_IF_ERROR(CheckJobOfPods(job));
  return job;
}

absl::Status CheckJobOfPods(const JobConfig& job) {
  RETURN_IF_ERROR(CheckWorksInPods(job));
  const std::vector<std::string> files = FilesOf(job.data());
  if (!std::all_of(files.begin(), files.end(), IsAbsolute)) {
    RETURN_IF_ERROR(CheckIsMounted("data_root", "the data", job.data_root(), job));
  }
  for (const std::string& file : files) {
    if (IsAbsolute(file)) RETURN_IF_ERROR(CheckIsMounted("data", "a file", file, job));
  }
  if (!job.init_from().empty()) {
    RETURN_IF_ERROR(CheckIsMounted("init_from", "the model", job.init_from(), job));
  }
  RETURN_IF_ERROR(CheckModel(job));
  return DeviceNeedOf(job).status();
}

absl::Status CheckOutputs(const JobConfig& job, const std::string& job_path,
                          const std::vector<std::string>& outputs) {
  std::set<std::string> inputs = {job_path};
  for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
    const auto splits = ListSplits(job, stream);
    // Listing fails if the files of a stream are gone. If the job reads that stream, another check
    // reports that.
    if (!splits.ok()) continue;
    for (const Split& split : *splits) inputs.insert(split.path);
  }
  for (const std::string& output : outputs) {
    for (const std::string& input : inputs) {
      std::error_code error;
      if (output.empty() || !fs::equivalent(output, input, error)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("cannot write ", output, ": it is ",
                       input == job_path ? "the job's file" : "a data file of the job"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FindModel(const std::string& run) {
  std::error_code error;
  if (fs::is_regular_file(run + "/manifest", error)) {
    // The last component may be a link. Do not resolve it: it may later refer to another cut of its
    // run.
    fs::path folder = fs::absolute(run, error).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    return (fs::canonical(folder.parent_path(), error) / folder.filename()).string();
  }
  const auto found = FindRun(run, kRunsDir);
  if (!found.ok() && fs::is_directory(run, error)) {
    return absl::NotFoundError(
        absl::StrCat("no saved model in ", run, ": it is neither a run nor a model's folder"));
  }
  if (!found.ok()) RETURN_IF_ERROR(RemovedCutError(run));
  ASSIGN_OR_RETURN(const std::string run_dir, found);
  for (const char* link : {"/checkpoints/best", "/checkpoints/latest"}) {
    if (fs::is_directory(run_dir + link, error)) return fs::canonical(run_dir, error).string();
  }
  return absl::NotFoundError(absl::StrCat("run ", run_dir, " has saved no model"));
}

std::vector<std::string> ModelWarnings(const JobConfig& job) {
  if (job.init_from().empty()) return {};
  // A run in training may remove the cut that a link names just before this function opens it. The
  // link then names a newer cut.
  for (int read = 0; read < kReadsOfVanishingCuts; ++read) {
    for (const char* place : {"", "/checkpoints/best", "/checkpoints/latest"}) {
      const auto manifest = ReadManifest(job.init_from() + place);
      if (manifest.ok()) return IdWarnings(*manifest, job);
    }
  }
  return {};
}

absl::Status CannotChange(const std::string& what, const absl::Status& why) {
  std::vector<std::string> problems;
  for (absl::string_view line : absl::StrSplit(why.message(), '\n', absl::SkipWhitespace())) {
    line = absl::StripAsciiWhitespace(line);
    // Drop "--set ", because `scale` takes its assignments without it.
    absl::ConsumePrefix(&line, "--set ");
    problems.emplace_back(line);
  }
  const std::string text = problems.size() == 1
                               ? absl::StrCat(what, ": ", problems[0])
                               : absl::StrCat(what, ":\n  ", absl::StrJoin(problems, "\n  "));
  return absl::Status(why.code(), text);
}

}  // namespace satrap
