#include "deploy/submit/cluster_runs.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "common/config/kubernetes_names.h"
#include "deploy/submit/manifests.h"
#include "deploy/submit/pod_notes.h"
#include "deploy/submit/run_objects.h"
#include "proto/kubectl.pb.h"

namespace satrap {
namespace {

// The pods of `run` among the objects of many runs.
KubectlList PodsOf(const KubectlList& objects, const std::string& run) {
  KubectlList pods;
  for (const KubectlObject& object : objects.items()) {
    if (object.kind() == "Pod" && LabelOf(object, kRunLabel) == run) *pods.add_items() = object;
  }
  return pods;
}

// `pods` are those of the run.
std::string StateText(const KubectlObject& job, const KubectlList& pods) {
  if (IsTrue(job, "Failed")) return "has failed";
  if (!IsTrue(job, "Complete")) return "is in progress";
  const std::string words = LastWordsOfStory(pods);
  if (words == RunState_Name(STOPPED)) return "was stopped";
  return words == RunState_Name(FINISHED) ? "has finished" : "has ended";
}

// Why the run has failed: ": WHY"; empty if it has not, or the pods do not say so.
std::string WhyFailed(const KubectlObject& job, const KubectlList& pods) {
  if (!IsTrue(job, "Failed")) return "";
  const std::string why = LastWordsOfStory(pods);
  return why.empty() ? "" : absl::StrCat(": ", why);
}

std::string PodLine(const KubectlObject& pod) {
  int64_t restarts = 0;
  for (const KubectlContainer& container : pod.status().containerstatuses()) {
    restarts += container.restartcount();
  }
  std::string line = absl::StrCat("  ", pod.metadata().name(), ": ", pod.status().phase());
  if (!pod.spec().nodename().empty()) absl::StrAppend(&line, " on ", pod.spec().nodename());
  if (IsBeingDeleted(pod)) absl::StrAppend(&line, ", is being deleted");
  if (pod.status().phase() == "Running" && !IsTrue(pod, "Ready")) {
    absl::StrAppend(&line, ", not ready");
  }
  absl::StrAppend(&line, ", ", Counted(static_cast<uint64_t>(restarts), "restart"));
  for (const PodNote& note : NotesOf(pod)) absl::StrAppend(&line, "; ", note.text);
  return line + "\n";
}

// Whether the pod is still there although it should be gone. The time in its deletionTimestamp
// includes its grace.
bool DoesNotGo(const KubectlObject& pod) {
  constexpr absl::Duration kPatience = absl::Seconds(30);
  absl::Time until;
  std::string error;
  return IsBeingDeleted(pod) &&
         absl::ParseTime(absl::RFC3339_full, pod.metadata().deletiontimestamp(), &until, &error) &&
         absl::Now() > until + kPatience;
}

std::string LineOfRun(const std::string& run, const std::string& state, const KubectlObject& object,
                      const std::string& more) {
  const std::string folder = AnnotationOf(object, kRunDirAnnotation);
  return absl::StrFormat("%-35s  %-16s  %s  %s%s\n", run, state,
                         object.metadata().creationtimestamp(), folder.empty() ? "-" : folder,
                         more);
}

// The kinds and names of the objects of the run's newest submission. Job RUN is the last.
std::vector<std::pair<std::string, std::string>> ObjectsOf(const std::string& run,
                                                           const KubectlList& objects) {
  RunInCluster newest;
  newest.name = run;
  for (const KubectlObject& object : objects.items()) {
    newest.submission = std::max(newest.submission, SubmissionOf(object));
  }
  std::vector<std::pair<std::string, std::string>> all = {{"Job", NameOfMembersJob(run)},
                                                          {"Service", NameOfRole(run, COORDINATOR)},
                                                          {"ConfigMap", NameOfJobMap(newest)}};
  for (const Role role : {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER}) {
    all.emplace_back("StatefulSet", NameOfRole(run, role));
  }
  all.emplace_back("Job", run);
  return all;
}

// The objects that somebody has deleted although the run needs them, one line for each, and what to
// do.
std::string LostText(const std::string& run, const std::string& space, const KubectlList& objects) {
  const std::string argument = RunArgument(run, space);
  const std::string remove_job =
      absl::StrCat("`kubectl delete job ", argument, "`, and after that ");
  const std::string repeat = "repeat the command that submitted or resumed the run";
  const bool has_story = FindObject(objects, "Job", run) != nullptr;
  std::string text;
  for (const auto& [kind, name] : ObjectsOf(run, objects)) {
    if (FindObject(objects, kind, name) != nullptr) continue;
    absl::StrAppend(&text, "  ", kind, " ", name, " is missing");
    if (name == NameOfMembersJob(run)) {
      // The other objects are removed with this one. A submission cannot get them back, because the
      // name of the run's folder ends with the uid of their owner.
      absl::StrAppend(&text, ", and with it the run's pods: to continue from the newest cut, use ",
                      has_story ? remove_job : "", "`satrap resume ", argument, "`\n");
      return text;
    }
    absl::StrAppend(&text, ": to make it again, ", has_story ? "use " + remove_job : "", repeat,
                    "\n");
  }
  return text;
}

// Pods are sorted by their roles and indices.
bool ComesBefore(const KubectlObject* a, const KubectlObject* b) {
  const std::string& left = a->metadata().name();
  const std::string& right = b->metadata().name();
  const std::string part = LabelOf(*a, kPartLabel);
  const std::string other = LabelOf(*b, kPartLabel);
  if (part != other) return part < other;
  return left.size() != right.size() ? left.size() < right.size() : left < right;
}

}  // namespace

absl::Status CheckRunName(const std::string& name) {
  if (IsRunName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the name of a run in a cluster ", kRunNameRule, ", got '", name, "'"));
}

absl::StatusOr<std::string> ListOfRuns(Kubectl* kubectl) {
  KubectlList objects;
  RETURN_IF_ERROR(
      kubectl->Ask({"get", "jobs.batch,configmaps,pods",
                    absl::StrCat(SelectorOf(""), ",", kPartLabel, " in (story,members,job)")},
                   &objects));
  std::map<std::string, std::string> lines;  // by the run's name
  for (const KubectlObject& job : objects.items()) {
    if (job.kind() != "Job" || LabelOf(job, kPartLabel) != "story") continue;
    if (IsBeingDeleted(job)) continue;
    const std::string& run = job.metadata().name();
    const KubectlList pods = PodsOf(objects, run);
    lines[run] = LineOfRun(run, StateText(job, pods), job, WhyFailed(job, pods));
  }
  // Job RUN is made last. If it is missing, a command was broken off, or a resume could not begin.
  for (const char* kind : {"Job", "ConfigMap"}) {
    for (const KubectlObject& object : objects.items()) {
      const std::string run = LabelOf(object, kRunLabel);
      const bool is_other = object.kind() != kind || LabelOf(object, kPartLabel) == "story";
      if (is_other || IsBeingDeleted(object) || lines.count(run) > 0) continue;
      const std::string cure = object.kind() == "Job"
                                   ? "; to complete it, repeat the command that was broken off; "
                                     "`satrap delete "
                                   : "; `satrap resume` continues it, and `satrap delete ";
      lines[run] =
          LineOfRun(run, object.kind() == "Job" ? "is incomplete" : "has no pods", object,
                    absl::StrCat(cure, RunArgument(run, kubectl->space()), "` removes it"));
    }
  }
  for (const KubectlObject& object : objects.items()) {
    const std::string run = LabelOf(object, kRunLabel);
    if (object.kind() == "Pod" || !IsBeingDeleted(object) || lines.count(run) > 0) continue;
    lines[run] = LineOfRun(run, "is being deleted", object, "");
  }
  std::string text;
  for (const auto& [run, line] : lines) text += line;
  return text;
}

absl::StatusOr<std::vector<std::string>> LogArguments(const std::string& run,
                                                      const LogChoice& choice, Kubectl* kubectl) {
  const std::string part = choice.role.has_value() ? "" : "story";
  KubectlList pods;
  RETURN_IF_ERROR(kubectl->Ask({"get", "pods", SelectorOf(run, part)}, &pods));
  const std::string name =
      choice.role.has_value() ? absl::StrCat(NameOfRole(run, *choice.role), "-", choice.index) : "";
  const KubectlObject* const pod =
      choice.role.has_value() ? FindObject(pods, "Pod", name) : NewestPod(pods, part);
  if (pod == nullptr && !choice.role.has_value()) return NoRun(run, *kubectl);
  if (pod == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "there is no pod ", name, " in ", SpaceText(kubectl->space()),
        ": if the run has ended, its logs are in the folder `logs` of the run's folder, which "
        "`satrap list` names"));
  }
  std::vector<std::string> args = {"logs"};
  if (choice.follow) args.emplace_back("--follow");
  if (choice.previous) args.emplace_back("--previous");
  args.push_back(pod->metadata().name());
  args.emplace_back("--container=satrap");
  return args;
}

absl::StatusOr<std::vector<std::string>> ArgumentsInPod(const std::string& run,
                                                        const std::vector<std::string>& command,
                                                        Kubectl* kubectl,
                                                        const std::vector<std::string>& more) {
  const std::string coordinator = NameOfRole(run, COORDINATOR);
  KubectlList objects;
  RETURN_IF_ERROR(
      kubectl->Ask({"get", absl::StrCat("jobs.batch/", run),
                    absl::StrCat("statefulsets.apps/", coordinator), "--ignore-not-found"},
                   &objects));
  const KubectlObject* const job = FindObject(objects, "Job", run);
  if (job != nullptr && HasEnded(*job)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run ", run, " ", IsTrue(*job, "Failed") ? "has failed" : "has ended",
                     ": `satrap logs ", RunArgument(run, kubectl->space()), "` shows how"));
  }
  // While a submission is being made, Job RUN may not be there yet although the coordinator serves.
  const KubectlObject* const has_folder =
      job != nullptr ? job : FindObject(objects, "StatefulSet", coordinator);
  if (has_folder == nullptr || LabelOf(*has_folder, kRunLabel) != run) return NoRun(run, *kubectl);
  // Runs the command line of the pod's own image, so that it is of the coordinator's build.
  std::vector<std::string> args = {"exec",
                                   coordinator + "-0",
                                   "--container=satrap",
                                   "--",
                                   "/opt/satrap/deploy/satrap_cli",
                                   "--install_dir=/opt/satrap"};
  args.insert(args.end(), command.begin(), command.end());
  args.push_back(AnnotationOf(*has_folder, kRunDirAnnotation));
  args.insert(args.end(), more.begin(), more.end());
  args.push_back(absl::StrCat("--coordinator=127.0.0.1:", kServePort));
  args.push_back(absl::StrCat("--submission=", std::max(SubmissionOf(*has_folder), 1)));
  return args;
}

absl::StatusOr<std::string> EndText(const std::string& run, Kubectl* kubectl) {
  ASSIGN_OR_RETURN(const KubectlList parts, PartsOf(run, kubectl));
  if (parts.items().empty()) return NoRun(run, *kubectl);
  const KubectlObject* const job = FindObject(parts, "Job", run);
  if (job == nullptr || !HasEnded(*job)) return "";
  return absl::StrCat("run ", run, " ", StateText(*job, parts), WhyFailed(*job, parts), "\nfolder ",
                      AnnotationOf(*job, kRunDirAnnotation), "\n`satrap logs ",
                      RunArgument(run, kubectl->space()), "` shows its story\n");
}

absl::StatusOr<std::string> PodsText(const std::string& run, Kubectl* kubectl) {
  ASSIGN_OR_RETURN(const KubectlList parts, PartsOf(run, kubectl));
  std::vector<const KubectlObject*> pods;
  for (const KubectlObject& part : parts.items()) {
    if (part.kind() == "Pod") pods.push_back(&part);
  }
  std::sort(pods.begin(), pods.end(), ComesBefore);
  std::string text;
  for (const KubectlObject* const pod : pods) absl::StrAppend(&text, PodLine(*pod));
  for (const Missing& missing : MissingPods(parts)) {
    absl::StrAppend(&text, "  ", missing.owner->kind(), " ", missing.owner->metadata().name(),
                    " lacks ", Counted(static_cast<uint64_t>(missing.pods), "pod"), "\n");
  }
  for (const PodNote& note : NotesOfMissing(parts, kubectl)) {
    absl::StrAppend(&text, "  ", LineOf(note), "\n");
  }
  KubectlList objects;
  RETURN_IF_ERROR(kubectl->Ask({"get", kKindsOfRun, SelectorOf(run)}, &objects));
  absl::StrAppend(&text, LostText(run, kubectl->space(), objects));
  // A StatefulSet does not replace the pod of a dead node until somebody removes the pod by force.
  for (const KubectlObject* const pod : pods) {
    if (!DoesNotGo(*pod)) continue;
    const std::string space =
        kubectl->space().empty() ? "" : absl::StrCat(" --namespace ", kubectl->space());
    absl::StrAppend(&text, "  if node ", pod->spec().nodename(), " is gone: kubectl delete pod ",
                    pod->metadata().name(), space, " --force\n");
  }
  return text;
}

}  // namespace satrap
