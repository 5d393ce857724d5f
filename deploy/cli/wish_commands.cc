// stop, checkpoint RUN, scale: the commands that wish something of a run in progress.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/run_wishes.h"
#include "deploy/launcher/run_folder.h"

namespace satrap {
namespace {

int Run(const CommandLine& line,
        absl::FunctionRef<absl::StatusOr<WishEnd>(const std::string& run_dir)> wish) {
  const auto run_dir = FindRun(line.arguments[0], kRunsDir);
  if (!run_dir.ok()) return PrintError(run_dir.status());
  const absl::StatusOr<WishEnd> end = wish(*run_dir);
  if (!end.ok()) return PrintError(end.status());
  if (!end->warning.empty()) fprintf(stderr, "satrap: warning: %s\n", end->warning.c_str());
  printf("%s\n", end->text.c_str());
  return 0;
}

}  // namespace

int StopCommand(const CommandLine& line) {
  return Run(line, [](const std::string& run_dir) { return StopRun(run_dir); });
}

int CheckpointCommand(const CommandLine& line) { return Run(line, TakeCut); }

int ScaleCommand(const CommandLine& line) {
  const std::vector<std::string> sets(line.arguments.begin() + 1, line.arguments.end());
  return Run(line, [&sets](const std::string& run_dir) { return ScaleRun(run_dir, sets); });
}

}  // namespace satrap
