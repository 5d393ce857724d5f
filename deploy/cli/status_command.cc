// The command `status`: asks the coordinator of a run in progress, or finds in the run's folder how
// the run ended. For a run in a cluster, a program in the coordinator's pod does this.

#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/grpc_channel.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_connection.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/show/run_state.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/launcher/process/run_progress.h"
#include "deploy/submit/cluster_flags.h"
#include "deploy/submit/cluster_runs.h"
#include "deploy/submit/kubectl/kubectl.h"

namespace satrap {
namespace {

constexpr int64_t kAnswerMs = 5000;

absl::StatusOr<StatusAnswer> AskCoordinator(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const auto connection, RunConnection::Open(run_dir));
  return connection->Status();
}

// As AskCoordinator, for a command in a pod of the run; returns the text to print.
absl::StatusOr<std::string> StatusInPod(const std::string& run_dir,
                                        const std::string& coordinator) {
  ASSIGN_OR_RETURN(const auto channel,
                   rpc::GrpcChannel::Create(coordinator, rpc::EndpointOptions()));
  ASSIGN_OR_RETURN(const StatusAnswer status,
                   CoordinatorClient(channel.get(), Envelope(), kAnswerMs).Status());
  const absl::StatusOr<RunProgress> progress = ReadRunProgress(run_dir);
  const bool has_job = progress.ok() && progress->job.has_value();
  return RunningRunText(run_dir, status, has_job ? &*progress->job : nullptr);
}

absl::StatusOr<std::string> StatusInCluster(const std::string& run, const std::string& space) {
  RETURN_IF_ERROR(CheckRunName(run));
  Kubectl kubectl(space);
  ASSIGN_OR_RETURN(const std::string end, EndText(run, &kubectl));
  if (!end.empty()) return end;
  ASSIGN_OR_RETURN(std::vector<std::string> args, ArgumentsInPod(run, {"status"}, &kubectl));
  const absl::StatusOr<std::string> told = kubectl.Run(std::move(args));
  ASSIGN_OR_RETURN(const std::string pods, PodsText(run, &kubectl));
  return absl::StrCat(
      told.ok() ? *told
                : absl::StrCat("the coordinator does not answer: ", told.status().message(), "\n"),
      "pods:\n", pods);
}

}  // namespace

int StatusCommand(const CommandCall& call) {
  PlaceFlags flags;
  const auto arguments = ParseArguments(call, flags.Table());
  if (!arguments.ok()) return PrintError(arguments.status());
  if (flags.coordinator.empty() && !arguments->empty()) {
    const absl::Status found = FindNamespace((*arguments)[0], &flags.space);
    if (!found.ok()) return PrintError(found);
  }
  if (!flags.space.empty() || !flags.coordinator.empty()) {
    if (arguments->empty())
      return PrintError(
          absl::InvalidArgumentError("--namespace needs the name of a run: `satrap list` "
                                     "shows the runs of the cluster"));
    const std::string& run = (*arguments)[0];
    return PrintText(flags.space.empty() ? StatusInPod(run, flags.coordinator)
                                         : StatusInCluster(run, flags.space));
  }
  const auto run_dir = FindRun(arguments->empty() ? "" : (*arguments)[0], kRunsDir);
  if (!run_dir.ok()) return PrintError(run_dir.status());
  const absl::StatusOr<StatusAnswer> status = AskCoordinator(*run_dir);
  if (status.ok()) {
    printf("%s", RunningRunText(*run_dir, *status).c_str());
    return 0;
  }
  // First check whether a launcher runs the run. If one has just resumed it, the files still
  // describe the previous end.
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
