// train, demo, validate: the commands that start from a job file.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/config/job_config.h"
#include "common/config/job_file.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_job.h"

namespace satrap {

int TrainCommand(const CommandLine& line) {
  const std::string name = line.command == Command::kDemo ? "demo" : line.arguments[0];
  const auto path = FindJobFile(name, line.install_dir);
  if (!path.ok()) return PrintError(path.status());
  std::vector<std::string> sets = line.sets;
  if (!line.init_from.empty()) sets.push_back(absl::StrCat("init_from=", line.init_from));
  const auto job = PrepareJob(*path, sets, line.install_dir);
  if (!job.ok()) return PrintError(job.status());
  const absl::Status outputs = CheckOutputs(*job, *path, {line.report});
  if (!outputs.ok()) return PrintError(outputs);
  PrintWarnings(ModelWarnings(*job));
  return RunJobAndReport(*job, line);
}

int ValidateCommand(const CommandLine& line) {
  const auto path = FindJobFile(line.arguments[0], line.install_dir);
  if (!path.ok()) return PrintError(path.status());
  std::string need;
  const auto job = PrepareJob(*path, line.sets, line.install_dir, &need);
  if (!job.ok()) return PrintError(job.status());
  PrintWarnings(ModelWarnings(*job));
  printf("%s", ResolvedJobText(*job).c_str());
  fprintf(stderr, "satrap: %s is valid\n", path->c_str());
  if (!need.empty()) fprintf(stderr, "satrap: each NN worker needs %s\n", need.c_str());
  return 0;
}

}  // namespace satrap
