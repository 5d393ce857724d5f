// The commands that start from a job file: train, demo, validate.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/config/job_config.h"
#include "common/config/job_file.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_job.h"

namespace satrap {

namespace {

int Train(const std::string& name, const RunFlags& flags, const std::string& install_dir) {
  const auto path = FindJobFile(name, install_dir);
  if (!path.ok()) return PrintError(path.status());
  const auto job = PrepareJob(*path, flags.sets, install_dir);
  if (!job.ok()) return PrintError(job.status());
  const absl::Status outputs = CheckOutputs(*job, *path, {flags.report});
  if (!outputs.ok()) return PrintError(outputs);
  PrintWarnings(ModelWarnings(*job));
  return RunJobAndReport(*job, flags);
}

}  // namespace

int TrainCommand(const CommandCall& call) {
  TrainFlags flags;
  const auto arguments = ParseArguments(call, flags.Table());
  if (!arguments.ok()) return PrintError(arguments.status());
  if (!flags.init_from.empty()) {
    flags.run.sets.push_back(absl::StrCat("init_from=", flags.init_from));
  }
  return Train((*arguments)[0], flags.run, call.install_dir);
}

absl::optional<int> DemoCommand(const CommandCall& call) {
  DemoFlags flags;
  absl::Status status = ParseArguments(call, flags.Table()).status();
  if (status.ok()) status = flags.Check();
  if (!status.ok()) return PrintError(status);
  if (flags.kafka) return absl::nullopt;
  return Train("demo", flags.run, call.install_dir);
}

int ValidateCommand(const CommandCall& call) {
  ValidateFlags flags;
  const auto arguments = ParseArguments(call, flags.Table());
  if (!arguments.ok()) return PrintError(arguments.status());
  const auto path = FindJobFile((*arguments)[0], call.install_dir);
  if (!path.ok()) return PrintError(path.status());
  std::string need;
  const auto job = PrepareJob(*path, flags.sets, call.install_dir, &need);
  if (!job.ok()) return PrintError(job.status());
  PrintWarnings(ModelWarnings(*job));
  printf("%s", ResolvedJobText(*job).c_str());
  fprintf(stderr, "satrap: %s is valid\n", path->c_str());
  if (!need.empty()) fprintf(stderr, "satrap: each NN worker needs %s\n", need.c_str());
  return 0;
}

}  // namespace satrap
