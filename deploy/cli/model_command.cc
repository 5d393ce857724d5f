// The commands `models`, which lists the models of the zoo, and `model`, which shows what a model
// consists of.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/near_match.h"
#include "common/base/status_macros.h"
#include "common/config/job_config.h"
#include "common/config/job_facts.h"
#include "common/config/job_file.h"
#include "common/file/file_error.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/show/model_text.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"
#include "nn_worker/zoo/zoo.h"

namespace satrap {
namespace {

struct ShownModel {
  ModelConfig model;
  GraphInputs inputs;
  std::vector<TableSize> tables;
};

absl::StatusOr<ShownModel> ModelOfZoo(const std::string& name, const ModelFlags& flags) {
  if (!flags.sets.empty()) {
    return absl::InvalidArgumentError(
        "--set is for jobs; for a model of the zoo, set the shape of the data by --features, "
        "--numerics and --dim");
  }
  ShownModel shown;
  ASSIGN_OR_RETURN(shown.model, ZooModel(name));
  ExampleData data;
  data.features = flags.features.value_or(data.features);
  data.numerics = flags.numerics.value_or(data.numerics);
  data.dim = flags.dim.value_or(data.dim);
  shown.inputs = ExampleInputs(shown.model, data);
  // All features of the example share one table, so the segments of its first feature make up a
  // row.
  TableSize table{"of all features", 0};
  for (const FeatureSegment& segment : shown.inputs.segments) {
    if (segment.feature == shown.inputs.segments[0].feature) table.row_values += segment.dim;
  }
  shown.tables = {table};
  return shown;
}

absl::StatusOr<ShownModel> ModelOfJob(const std::string& name, const ModelFlags& flags,
                                      const std::string& install_dir) {
  if (flags.features.has_value() || flags.numerics.has_value() || flags.dim.has_value()) {
    return absl::InvalidArgumentError(
        "--features, --numerics and --dim are for models of the zoo; a job defines its own data");
  }
  const auto path = FindJobFile(name, install_dir);
  if (!path.ok()) {
    return absl::NotFoundError(absl::StrCat(path.status().message(),
                                            "; the zoo has no such model either",
                                            DidYouMean(name, ZooNames())));
  }
  ASSIGN_OR_RETURN(const JobConfig job, LoadJob(*path, flags.sets, install_dir));
  ShownModel shown{job.model(), MakePartLayout(job).inputs, {}};
  for (const TableConfig& table : job.tables()) {
    shown.tables.push_back({table.name(), RowValues(table)});
  }
  return shown;
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  FILE* file = fopen(path.c_str(), "w");
  if (file == nullptr) return FileError("write", path);
  const bool written = fwrite(text.data(), 1, text.size(), file) == text.size();
  if (fclose(file) != 0 || !written) return FileError("write", path);
  return absl::OkStatus();
}

absl::Status ShowModel(const CommandCall& call) {
  ModelFlags flags;
  ASSIGN_OR_RETURN(const std::vector<std::string> arguments, ParseArguments(call, flags.Table()));
  const std::string& name = arguments[0];
  const std::vector<std::string> zoo = ZooNames();
  const bool of_zoo = std::find(zoo.begin(), zoo.end(), name) != zoo.end();
  absl::StatusOr<ShownModel> shown =
      of_zoo ? ModelOfZoo(name, flags) : ModelOfJob(name, flags, call.install_dir);
  RETURN_IF_ERROR(shown.status());
  ASSIGN_OR_RETURN(const std::string text,
                   ModelText(shown->model, shown->inputs, shown->tables, flags.rows));
  if (!flags.dot.empty()) {
    ASSIGN_OR_RETURN(const std::string dot, ModelDot(shown->model, shown->inputs));
    RETURN_IF_ERROR(WriteText(flags.dot, dot));
  }
  printf("%s", text.c_str());
  return absl::OkStatus();
}

}  // namespace

int ModelsCommand(const CommandCall& call) {
  const absl::Status status = ParseArguments(call, {}).status();
  if (!status.ok()) return PrintError(status);
  printf("%s", ZooText().c_str());
  return 0;
}

int ModelCommand(const CommandCall& call) {
  const absl::Status status = ShowModel(call);
  return status.ok() ? 0 : PrintError(status);
}

}  // namespace satrap
