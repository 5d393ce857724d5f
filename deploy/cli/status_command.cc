// status: asks the coordinator of a run in progress, or finds in its folder how the run ended.

#include <cstdio>
#include <ctime>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_connection.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/show/run_state.h"
#include "deploy/launcher/process/run_folder.h"

namespace satrap {
namespace {

absl::StatusOr<StatusAnswer> AskCoordinator(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const auto connection, RunConnection::Open(run_dir));
  return connection->Status();
}

}  // namespace

int StatusCommand(const CommandCall& call) {
  const auto arguments = ParseArguments(call, {});
  if (!arguments.ok()) return PrintError(arguments.status());
  const auto run_dir = FindRun(arguments->empty() ? "" : (*arguments)[0], kRunsDir);
  if (!run_dir.ok()) return PrintError(run_dir.status());
  const absl::StatusOr<StatusAnswer> status = AskCoordinator(*run_dir);
  if (status.ok()) {
    printf("%s", RunningRunText(*run_dir, *status).c_str());
    return 0;
  }
  // First check whether a launcher runs the run. If a launcher has just resumed it, the files still
  // describe how it ended before.
  const std::string runner = RunnerOf(*run_dir);
  if (!runner.empty()) {
    printf(
        "run %s is starting, ending or between two generations, or its coordinator does not "
        "answer (%s runs it)\n",
        run_dir->c_str(), runner.c_str());
    return 0;
  }
  const auto text = EndedRunText(*run_dir, int64_t{1000} * time(nullptr));
  if (!text.ok()) return PrintError(text.status());
  printf("%s", text->c_str());
  return 0;
}

}  // namespace satrap
