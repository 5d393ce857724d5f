// submit, list, logs, delete: the commands for runs in a Kubernetes cluster; and story, which runs
// there.

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/config/job_file.h"
#include "common/config/kubernetes_names.h"
#include "common/file/file_system.h"
#include "common/role/role_flags.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_job.h"
#include "deploy/story/run_story.h"
#include "deploy/submit/cluster_flags.h"
#include "deploy/submit/cluster_runs.h"
#include "deploy/submit/kubectl.h"
#include "deploy/submit/manifests.h"
#include "deploy/submit/pod_resources.h"
#include "deploy/submit/submission.h"

namespace satrap {
namespace {

constexpr int kSignalExit = 128;

void SayLine(const std::string& line) { fprintf(stderr, "satrap: %s\n", line.c_str()); }

// "criteo-dlrm" of a job criteo_dlrm.
std::string RunNameOf(const JobConfig& job, const std::string& path) {
  const std::string name =
      job.name().empty() ? std::filesystem::path(path).stem().string() : job.name();
  return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", "-"}, {".", "-"}});
}

absl::StatusOr<RunInCluster> RunOf(const CommandCall& call, const std::string& name,
                                   const SubmitFlags& flags) {
  ASSIGN_OR_RETURN(const std::string path, FindJobFile(name, call.install_dir));
  RunInCluster run;
  ASSIGN_OR_RETURN(run.job, PrepareJobOfPods(path, flags.sets, call.install_dir));
  run.name = flags.name.empty() ? RunNameOf(run.job, path) : flags.name;
  run.space = flags.space;
  run.image = flags.image.empty() ? run.job.kubernetes().image() : flags.image;
  RETURN_IF_ERROR(CheckRun(run));
  return run;
}

absl::StatusOr<std::string> PatchOf(const JobConfig& job) {
  const std::string& file = job.kubernetes().pod_patch();
  if (file.empty()) return "";
  ASSIGN_OR_RETURN(const std::string patch, ReadFile(file, DiskFileSystem()));
  return PatchOfTemplate(patch, file);
}

std::string HowToComeBack(const RunInCluster& run) {
  const std::string space = run.space.empty() ? "" : absl::StrCat(" --namespace ", run.space);
  return absl::StrCat("the run goes on; `satrap logs ", run.name, space,
                      " --follow` shows it, and ", "`satrap list", space, "` how it ends");
}

// Returns the exit code.
absl::StatusOr<int> Submit(const CommandCall& call, SubmitFlags* flags) {
  ASSIGN_OR_RETURN(const std::vector<std::string> arguments, ParseArguments(call, flags->Table()));
  ASSIGN_OR_RETURN(RunInCluster run, RunOf(call, arguments[0], *flags));
  ASSIGN_OR_RETURN(const std::string patch, PatchOf(run.job));
  Kubectl kubectl(flags->space);
  PrintWarnings(PodWarnings(run.job));
  if (flags->dry_run) {
    ASSIGN_OR_RETURN(const std::string text, PatchedManifests(run, patch, &kubectl));
    printf("%s", text.c_str());
    return 0;
  }
  Submission submission(std::move(run), patch, &kubectl, SayLine, WaitForSignal);
  RETURN_IF_ERROR(submission.CheckCluster());
  RETURN_IF_ERROR(submission.Create());
  const RunInCluster& made = submission.run();
  SayLine(absl::StrCat("run ", made.name, " is submitted; its folder is ", RunDirOf(made)));
  // From here on Ctrl-C ends this command, and not the run.
  BlockSignalsOfStream();
  const absl::Status serves = submission.AwaitCoordinator();
  if (absl::IsCancelled(serves)) {
    SayLine(HowToComeBack(made));
    return kSignalExit + SIGINT;
  }
  if (!serves.ok()) {
    const absl::Status removed = submission.Remove();
    return removed.ok() ? serves
                        : absl::Status(serves.code(), absl::StrCat(serves.message(),
                                                                   "\nand its objects are still "
                                                                   "there: ",
                                                                   removed.message()));
  }
  if (flags->detach) {
    SayLine(HowToComeBack(made));
    return 0;
  }
  ASSIGN_OR_RETURN(const Watched watched, WatchRun(made.name, &kubectl, WaitForSignal));
  if (watched.signal == 0) return watched.failed ? 1 : 0;
  SayLine(HowToComeBack(made));
  return kSignalExit + watched.signal;
}

absl::Status CheckRunName(const std::string& name) {
  if (IsRunName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the name of a run in a cluster ", kRunNameRule, ", got '", name, "'"));
}

// Becomes kubectl unless that fails.
absl::Status ShowLog(const CommandCall& call) {
  ClusterLogFlags flags;
  ASSIGN_OR_RETURN(const std::vector<std::string> arguments, ParseArguments(call, flags.Table()));
  RETURN_IF_ERROR(CheckRunName(arguments[0]));
  absl::optional<Role> role;
  int index = 0;
  if (arguments.size() > 1) {
    for (const Role each : {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER}) {
      if (arguments[1] == RoleName(each)) role = each;
    }
    if (!role.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no role '", arguments[1],
                       "'; the roles are coordinator, embedding_ps, embedding_worker, data_loader, "
                       "nn_worker"));
    }
  }
  if (arguments.size() > 2 && (!absl::SimpleAtoi(arguments[2], &index) || index < 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", arguments[2], "' is no index of a process: the first one of a role is 0"));
  }
  fflush(nullptr);
  return Kubectl(flags.cluster.space)
      .Become(LogArguments(arguments[0], role, index, flags.follow, flags.previous));
}

// Lets the run take a last cut and end, and has its objects removed.
absl::Status StopAndDelete(const std::string& run, Kubectl* kubectl) {
  constexpr int kAttempts = 60;  // for the Job to notice, one a second
  BlockSignalsOfStream();
  absl::StatusOr<std::vector<std::string>> stop = ArgumentsInPod(run, "stop", kubectl);
  if (stop.ok()) {
    ASSIGN_OR_RETURN(const int signal, kubectl->Stream(*std::move(stop)));
    if (signal != 0) return absl::CancelledError("stopped by a signal; nothing is removed");
  } else if (!absl::IsFailedPrecondition(stop.status()) && !absl::IsNotFound(stop.status())) {
    return stop.status();
  }
  for (int attempt = 1;; ++attempt) {
    const absl::Status status = DeleteRun(run, /*now=*/false, kubectl);
    if (!absl::IsFailedPrecondition(status) || attempt == kAttempts) return status;
    if (WaitForSignal(1000) != 0) {
      return absl::CancelledError("stopped by a signal; nothing is removed");
    }
  }
}

absl::Status Delete(const CommandCall& call) {
  DeleteFlags flags;
  ASSIGN_OR_RETURN(const std::vector<std::string> arguments, ParseArguments(call, flags.Table()));
  RETURN_IF_ERROR(CheckRunName(arguments[0]));
  Kubectl kubectl(flags.cluster.space);
  RETURN_IF_ERROR(flags.now ? DeleteRun(arguments[0], /*now=*/true, &kubectl)
                            : StopAndDelete(arguments[0], &kubectl));
  printf("run %s is being removed from the cluster; its folder stays\n", arguments[0].c_str());
  return absl::OkStatus();
}

absl::StatusOr<std::string> List(const CommandCall& call) {
  NamespaceFlags flags;
  RETURN_IF_ERROR(ParseArguments(call, flags.Table()).status());
  Kubectl kubectl(flags.space);
  return ListOfRuns(&kubectl);
}

}  // namespace

int SubmitCommand(const CommandCall& call) {
  SubmitFlags flags;
  const absl::StatusOr<int> code = Submit(call, &flags);
  return code.ok() ? *code : PrintError(code.status());
}

int ListCommand(const CommandCall& call) {
  const absl::StatusOr<std::string> list = List(call);
  if (!list.ok()) return PrintError(list.status());
  printf("%s", list->c_str());
  if (list->empty()) SayLine("there are no runs");
  return 0;
}

int LogsCommand(const CommandCall& call) { return PrintError(ShowLog(call)); }

int DeleteCommand(const CommandCall& call) {
  const absl::Status status = Delete(call);
  return status.ok() ? 0 : PrintError(status);
}

int StoryCommand(const CommandCall& call) {
  StoryFlags flags;
  const absl::Status parsed = ParseArguments(call, flags.Table()).status();
  if (!parsed.ok()) return PrintError(parsed);
  // As process 1 this would never see a signal that it does not ask for.
  BlockSignalsOfStream();
  StoryOptions options;
  options.run_dir = flags.run_dir;
  options.coordinator = flags.coordinator;
  options.submission = flags.submission;
  options.termination_log = flags.termination_log;
  options.wait = WaitForSignal;
  return TellStory(options, [](const std::string& text) { fputs(text.c_str(), stderr); });
}

}  // namespace satrap
