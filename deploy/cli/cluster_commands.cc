// The commands for runs in a Kubernetes cluster: submit, list, logs, delete, and resume with
// --namespace. Also story and members, commands that run in pods of the cluster.

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/config/job_change.h"
#include "common/config/job_config.h"
#include "common/config/job_file.h"
#include "common/file/file_system.h"
#include "common/role/role_flags.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_job.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/story/members_wait.h"
#include "deploy/story/run_story.h"
#include "deploy/submit/cluster_flags.h"
#include "deploy/submit/cluster_runs.h"
#include "deploy/submit/command/delete_run.h"
#include "deploy/submit/command/run_place.h"
#include "deploy/submit/command/submit_run.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/manifests.h"
#include "deploy/submit/pod_resources.h"
#include "deploy/submit/run_reader.h"
#include "deploy/submit/submission.h"
#include "deploy/submit/submitted_run.h"

namespace satrap {
namespace {

// The default name of the job's run: "criteo-dlrm" for a job criteo_dlrm.
std::string RunNameOf(const JobConfig& job, const std::string& path) {
  const std::string name =
      job.name().empty() ? std::filesystem::path(path).stem().string() : job.name();
  return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", "-"}, {".", "-"}});
}

absl::StatusOr<RunInCluster> RunOf(const CommandCall& call, const std::string& path,
                                   const SubmitFlags& flags) {
  RunInCluster run;
  ASSIGN_OR_RETURN(run.job, PrepareJobOfPods(path, flags.sets, call.install_dir));
  run.name = flags.name.empty() ? RunNameOf(run.job, path) : flags.name;
  run.space = flags.space;
  run.image = flags.image.empty() ? run.job.kubernetes().image() : flags.image;
  RETURN_IF_ERROR(CheckRun(run));
  return run;
}

// The pod template patch that the job names (kubernetes.pod_patch); "" if it names none. The path
// in the job is relative to the folder of the job's file.
absl::StatusOr<std::string> PatchOf(const JobConfig& job, const std::string& job_path) {
  const std::string& name = job.kubernetes().pod_patch();
  if (name.empty()) return "";
  const std::string file = (std::filesystem::path(job_path).parent_path() / name).string();
  ASSIGN_OR_RETURN(const std::string patch, ReadFile(file, DiskFileSystem()));
  return PatchOfTemplate(patch, file);
}

absl::StatusOr<int> MakeAndWatch(RunInCluster run, bool detach, Kubectl* kubectl) {
  SubmitOptions options;
  options.detach = detach;
  options.runs_dir = kRunsDir;
  options.watch = {ShowText, SayLine, WaitForSignal};
  return SubmitRun(std::move(run), kubectl, options);
}

// Returns the exit code.
absl::StatusOr<int> Submit(const CommandCall& call, SubmitFlags* flags) {
  ASSIGN_OR_RETURN(const std::vector<std::string> arguments, ParseArguments(call, flags->Table()));
  ASSIGN_OR_RETURN(const std::string path, FindJobFile(arguments[0], call.install_dir));
  ASSIGN_OR_RETURN(RunInCluster run, RunOf(call, path, *flags));
  ASSIGN_OR_RETURN(run.template_patch, PatchOf(run.job, path));
  Kubectl kubectl(flags->space);
  PrintWarnings(PodWarnings(run.job));
  if (!run.job.run_dir().empty()) {
    PrintWarnings({absl::StrCat("run_dir, ", run.job.run_dir(),
                                ", is not used: the run's folder is created in the volume without "
                                "read_only")});
  }
  if (flags->dry_run) {
    ASSIGN_OR_RETURN(const std::string text, PatchedManifests(run, &kubectl));
    printf("%s", text.c_str());
    return 0;
  }
  return MakeAndWatch(std::move(run), flags->detach, &kubectl);
}

// Retries for some seconds, because the Job of a run that was just stopped ends a moment after the
// run.
absl::StatusOr<RunInCluster> AwaitNextSubmission(const std::string& name, Kubectl* kubectl) {
  constexpr int kAttempts = 10;
  BlockSignalsOfStream();
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<RunInCluster> next = NextSubmission(name, kubectl);
    if (!absl::IsUnavailable(next.status()) || attempt == kAttempts) return next;
    if (WaitForSignal(1000) != 0) return absl::CancelledError("stopped by a signal");
  }
}

// Returns the exit code.
absl::StatusOr<int> Resume(const std::string& name, const ResumeFlags& flags) {
  RETURN_IF_ERROR(CheckRunName(name));
  if (!flags.run.report.empty()) {
    return absl::InvalidArgumentError(
        "--report is for a run on this machine: the report of a run in the cluster is in the "
        "run's folder");
  }
  Kubectl kubectl(flags.space);
  ASSIGN_OR_RETURN(RunInCluster run, AwaitNextSubmission(name, &kubectl));
  const std::string patch = run.job.kubernetes().pod_patch();
  absl::StatusOr<JobConfig> job = ChangedJob(run.job, flags.run.sets);
  if (!job.ok()) {
    return CannotChange(absl::StrCat("run ", name, " cannot continue with this job"), job.status());
  }
  run.job = *std::move(job);
  RETURN_IF_ERROR(CheckJobOfPods(run.job));
  run.image = flags.image.empty() ? run.job.kubernetes().image() : flags.image;
  if (run.job.kubernetes().pod_patch() != patch) {
    ASSIGN_OR_RETURN(run.template_patch, PatchOf(run.job, /*job_path=*/""));
  }
  // If the user typed the path of a cut's folder, the last component is the cut's name.
  run.from = std::filesystem::path(flags.from_cut).filename().string();
  RETURN_IF_ERROR(CheckRun(run));
  PrintWarnings(PodWarnings(run.job));
  return MakeAndWatch(std::move(run), flags.detach, &kubectl);
}

// Shows the log of a process whose pod is gone, from the run's folder. If the run continues,
// replaces this process by kubectl, and returns only if that fails.
absl::Status ShowKeptLog(const std::string& run, const LogChoice& choice, Kubectl* kubectl) {
  const std::vector<std::string> process = {absl::StrCat(RoleName(*choice.role)),
                                            absl::StrCat(choice.index)};
  if (choice.follow) {
    return absl::InvalidArgumentError(
        absl::StrCat("--follow is for pods, and ", RoleName(*choice.role), " ", choice.index,
                     " has none now: without --follow, this command shows the log that is kept"));
  }
  absl::StatusOr<std::vector<std::string>> args = ArgumentsInPod(run, {"logs"}, kubectl, process);
  if (args.ok()) return kubectl->Become(*std::move(args));
  if (!absl::IsFailedPrecondition(args.status()) && !absl::IsNotFound(args.status())) {
    return args.status();
  }
  BlockSignalsOfStream();
  ASSIGN_OR_RETURN(const std::string log,
                   ReadInPod(run, {"logs"}, process, kubectl, SayLine, WaitForSignal));
  ShowText(log);
  return absl::OkStatus();
}

// Shows a log from the folder of a run, which is on this machine or in the pod of this process.
absl::Status ShowLogOfFolder(const std::string& run_dir, const LogChoice& choice) {
  if (!choice.role.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the logs of a run on this machine are files in ", run_dir,
                     "/logs: `logs` needs a role and an index, such as embedding_ps 0"));
  }
  const std::string path =
      absl::StrCat(run_dir, "/logs/", RoleName(*choice.role), "_", choice.index, ".log");
  if (choice.follow || choice.previous) {
    return absl::InvalidArgumentError(
        absl::StrCat("--follow and --previous are for pods: the log of all generations is ", path));
  }
  ASSIGN_OR_RETURN(const std::string log, ReadFile(path, DiskFileSystem()));
  ShowText(log);
  return absl::OkStatus();
}

absl::StatusOr<LogChoice> ChoiceOf(const std::vector<std::string>& arguments,
                                   const ClusterLogFlags& flags) {
  LogChoice choice;
  choice.follow = flags.follow;
  choice.previous = flags.previous;
  if (arguments.size() > 1) {
    for (const Role each : {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER}) {
      if (arguments[1] == RoleName(each)) choice.role = each;
    }
    if (!choice.role.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no role '", arguments[1],
                       "'; the roles are coordinator, embedding_ps, embedding_worker, data_loader, "
                       "nn_worker"));
    }
  }
  if (arguments.size() > 2 &&
      (!absl::SimpleAtoi(arguments[2], &choice.index) || choice.index < 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", arguments[2], "' is not an index of a process: the first one of a role is 0"));
  }
  return choice;
}

// Shows a log. For a run in the cluster, normally replaces this process by kubectl, and then
// returns only if that fails.
absl::Status ShowLog(CommandCall call) {
  for (std::string& argument : call.args) {
    if (argument == "-f") argument = "--follow";
  }
  ClusterLogFlags flags;
  ASSIGN_OR_RETURN(const std::vector<std::string> arguments, ParseArguments(call, flags.Table()));
  ASSIGN_OR_RETURN(const LogChoice choice, ChoiceOf(arguments, flags));
  const std::string& run = arguments[0];
  if (!flags.coordinator.empty()) return ShowLogOfFolder(run, choice);  // in a pod of the run
  ASSIGN_OR_RETURN(const std::string space, NamespaceOf(run, flags.cluster.space, kRunsDir));
  if (space.empty()) {
    const absl::StatusOr<std::string> folder = FindRun(run, kRunsDir);
    if (folder.ok()) return ShowLogOfFolder(*folder, choice);
  }
  RETURN_IF_ERROR(CheckRunName(run));
  Kubectl kubectl(space);
  absl::StatusOr<std::vector<std::string>> args = LogArguments(run, choice, &kubectl);
  fflush(nullptr);
  if (args.ok()) return kubectl.Become(*std::move(args));
  if (absl::IsNotFound(args.status()) && choice.role.has_value() && !choice.previous) {
    return ShowKeptLog(run, choice, &kubectl);
  }
  return args.status();
}

absl::Status Delete(const CommandCall& call) {
  DeleteFlags flags;
  ASSIGN_OR_RETURN(const std::vector<std::string> arguments, ParseArguments(call, flags.Table()));
  const std::string& run = arguments[0];
  ASSIGN_OR_RETURN(const std::string space, NamespaceOf(run, flags.cluster.space, kRunsDir));
  if (space.empty() && FindRun(run, kRunsDir).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(run,
                     " is a run on this machine, which has only a folder, but `delete` "
                     "removes runs from a cluster and leaves their folders"));
  }
  RETURN_IF_ERROR(CheckRunName(run));
  Kubectl kubectl(space);
  BlockSignalsOfStream();
  RETURN_IF_ERROR(DeleteNotedRun(run, flags.now, kRunsDir, &kubectl, WaitForSignal));
  printf("run %s is being removed from the cluster; its folder stays\n", run.c_str());
  return absl::OkStatus();
}

absl::StatusOr<std::string> List(const CommandCall& call) {
  NamespaceFlags flags;
  RETURN_IF_ERROR(ParseArguments(call, flags.Table()).status());
  Kubectl kubectl(flags.space);
  return ListOfRuns(&kubectl);
}

absl::StatusOr<int> AwaitMembers(const CommandCall& call) {
  MembersFlags flags;
  RETURN_IF_ERROR(ParseArguments(call, flags.Table()).status());
  ASSIGN_OR_RETURN(const JobConfig job, ReadResolvedJob(flags.config));
  if (job.run_dir().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(flags.config, " has no run_dir"));
  }
  // In a pod this is process 1, and the kernel drops signals to process 1 that it neither blocks
  // nor handles.
  BlockSignalsOfStream();
  return AwaitSubmissionEnd(job.run_dir(), flags.submission, flags.coordinator, WaitForSignal);
}

}  // namespace

absl::Status FindNamespace(const std::string& run, std::string* space) {
  ASSIGN_OR_RETURN(*space, NamespaceOf(run, *space, kRunsDir));
  return absl::OkStatus();
}

int SubmitCommand(const CommandCall& call) {
  SubmitFlags flags;
  const absl::StatusOr<int> code = Submit(call, &flags);
  return code.ok() ? *code : PrintError(code.status());
}

int ResumeInCluster(const std::string& run, const ResumeFlags& flags) {
  const absl::StatusOr<int> code = Resume(run, flags);
  return code.ok() ? *code : PrintError(code.status());
}

int ListCommand(const CommandCall& call) {
  const absl::StatusOr<std::string> list = List(call);
  if (!list.ok()) return PrintError(list.status());
  printf("%s", list->c_str());
  if (list->empty()) SayLine("there are no runs");
  return 0;
}

int LogsCommand(const CommandCall& call) {
  const absl::Status shown = ShowLog(call);
  return shown.ok() ? 0 : PrintError(shown);
}

int MembersCommand(const CommandCall& call) {
  const absl::StatusOr<int> code = AwaitMembers(call);
  return code.ok() ? *code : PrintError(code.status());
}

int DeleteCommand(const CommandCall& call) {
  const absl::Status status = Delete(call);
  return status.ok() ? 0 : PrintError(status);
}

int StoryCommand(const CommandCall& call) {
  StoryFlags flags;
  const absl::Status parsed = ParseArguments(call, flags.Table()).status();
  if (!parsed.ok()) return PrintError(parsed);
  // In a pod this is process 1, and the kernel drops signals to process 1 that it neither blocks
  // nor handles.
  BlockSignalsOfStream();
  StoryOptions options;
  options.run_dir = flags.run_dir;
  options.coordinator = flags.coordinator;
  options.submission = flags.submission;
  options.start_seconds = flags.start_seconds;
  options.termination_log = flags.termination_log;
  options.wait = WaitForSignal;
  return TellStory(options, [](const std::string& text) { fputs(text.c_str(), stderr); });
}

}  // namespace satrap
