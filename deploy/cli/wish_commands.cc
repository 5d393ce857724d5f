// stop, checkpoint RUN, scale: commands that ask a run in progress for something (a wish).

#include <cstdio>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/run_wishes.h"
#include "deploy/launcher/process/run_folder.h"

namespace satrap {
namespace {

int Wish(const std::string& run,
         absl::FunctionRef<absl::StatusOr<WishEnd>(const std::string& run_dir)> wish) {
  const auto run_dir = FindRun(run, kRunsDir);
  if (!run_dir.ok()) return PrintError(run_dir.status());
  const absl::StatusOr<WishEnd> end = wish(*run_dir);
  if (!end.ok()) return PrintError(end.status());
  if (!end->warning.empty()) fprintf(stderr, "satrap: warning: %s\n", end->warning.c_str());
  printf("%s\n", end->text.c_str());
  return 0;
}

}  // namespace

int StopCommand(const CommandCall& call) {
  const auto arguments = ParseArguments(call, {});
  if (!arguments.ok()) return PrintError(arguments.status());
  return Wish((*arguments)[0], [](const std::string& run_dir) { return StopRun(run_dir); });
}

int TakeCutOf(const std::string& run) { return Wish(run, TakeCut); }

int ScaleCommand(const CommandCall& call) {
  const auto arguments = ParseScale(call);
  if (!arguments.ok()) return PrintError(arguments.status());
  const std::vector<std::string> sets(arguments->begin() + 1, arguments->end());
  return Wish((*arguments)[0],
              [&sets](const std::string& run_dir) { return ScaleRun(run_dir, sets); });
}

}  // namespace satrap
