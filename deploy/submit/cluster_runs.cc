#include "deploy/submit/cluster_runs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "deploy/submit/manifests.h"
#include "deploy/submit/pod_notes.h"
#include "proto/kubectl.pb.h"

namespace satrap {
namespace {

constexpr int64_t kPeriodMs = 1000;

std::string SelectorOf(const std::string& run, absl::string_view part) {
  std::string selector = absl::StrCat("--selector=", kAppLabel, "=satrap");
  if (!run.empty()) absl::StrAppend(&selector, ",", kRunLabel, "=", run);
  if (!part.empty()) absl::StrAppend(&selector, ",", kPartLabel, "=", part);
  return selector;
}

bool HasEnded(const KubectlObject& job) { return IsTrue(job, "Complete") || IsTrue(job, "Failed"); }

std::string StateText(const KubectlObject& job) {
  if (job.metadata().has_deletiontimestamp()) return "is being deleted";
  if (IsTrue(job, "Failed")) return "has failed";
  return IsTrue(job, "Complete") ? "has ended" : "goes on";
}

absl::Status NoRun(const std::string& run, const Kubectl& kubectl) {
  const std::string& space = kubectl.space();
  return absl::NotFoundError(absl::StrCat(
      "there is no run ", run, " in ",
      space.empty() ? "the namespace of your context" : absl::StrCat("namespace ", space)));
}

}  // namespace

absl::StatusOr<Watched> WatchRun(const std::string& run, Kubectl* kubectl,
                                 const std::function<int(int64_t timeout_ms)>& wait) {
  Watched watched;
  std::string shown;  // the uid of the pod whose log was shown
  std::string until;  // to when
  while (true) {
    KubectlList pods;
    const absl::Status asked = kubectl->Ask({"get", "pods", SelectorOf(run, "story")}, &pods);
    for (const KubectlObject& pod : pods.items()) {
      const bool is_known = pod.metadata().uid() == shown;
      // A log that broke off is shown from there on; that of a pod that has ended is complete.
      if (pod.status().phase() == "Pending" || (is_known && pod.status().phase() != "Running")) {
        continue;
      }
      std::vector<std::string> args = {"logs", "--follow", pod.metadata().name()};
      if (is_known) args.push_back(absl::StrCat("--since-time=", until));
      ASSIGN_OR_RETURN(watched.signal, kubectl->Stream(std::move(args)));
      if (watched.signal != 0) return watched;
      shown = pod.metadata().uid();
      until = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
    }
    KubectlObject job;
    if (asked.ok() && kubectl->Ask({"get", "jobs.batch", run, "--ignore-not-found"}, &job).ok()) {
      if (!job.has_metadata()) {
        return absl::NotFoundError(absl::StrCat("the run ", run, " was deleted"));
      }
      watched.failed = IsTrue(job, "Failed");
      if (HasEnded(job)) return watched;
    }
    watched.signal = wait(kPeriodMs);
    if (watched.signal != 0) return watched;
  }
}

absl::StatusOr<std::string> ListOfRuns(Kubectl* kubectl) {
  KubectlList jobs;
  RETURN_IF_ERROR(kubectl->Ask({"get", "jobs.batch", SelectorOf("", "story")}, &jobs));
  std::vector<std::string> lines;
  for (const KubectlObject& job : jobs.items()) {
    lines.push_back(absl::StrFormat("%-35s  %-16s  %s  %s\n", job.metadata().name(), StateText(job),
                                    job.metadata().creationtimestamp(),
                                    AnnotationOf(job, kRunDirAnnotation)));
  }
  std::sort(lines.begin(), lines.end());
  return absl::StrJoin(lines, "");
}

std::vector<std::string> LogArguments(const std::string& run, absl::optional<Role> role, int index,
                                      bool follow, bool previous) {
  std::vector<std::string> args = {"logs"};
  if (follow) args.emplace_back("--follow");
  if (previous) args.emplace_back("--previous");
  args.push_back(role.has_value() ? absl::StrCat(NameOfRole(run, *role), "-", index)
                                  : absl::StrCat("jobs/", run));
  return args;
}

absl::StatusOr<std::vector<std::string>> ArgumentsInPod(const std::string& run,
                                                        const std::string& command,
                                                        Kubectl* kubectl) {
  KubectlObject job;
  RETURN_IF_ERROR(kubectl->Ask({"get", "jobs.batch", run, "--ignore-not-found"}, &job));
  if (!job.has_metadata()) return NoRun(run, *kubectl);
  if (HasEnded(job)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run ", run, " ", StateText(job), ": `satrap logs ", run, "` shows how"));
  }
  return std::vector<std::string>{"exec",
                                  NameOfRole(run, COORDINATOR) + "-0",
                                  "--container=satrap",
                                  "--",
                                  "/opt/satrap/deploy/satrap_cli",
                                  "--install_dir=/opt/satrap",
                                  command,
                                  AnnotationOf(job, kRunDirAnnotation),
                                  absl::StrCat("--coordinator=127.0.0.1:", kServePort)};
}

absl::StatusOr<std::string> PodsText(const std::string& run, Kubectl* kubectl) {
  KubectlList pods;
  RETURN_IF_ERROR(kubectl->Ask({"get", "pods", SelectorOf(run, "")}, &pods));
  std::vector<std::string> lines;
  for (const KubectlObject& pod : pods.items()) {
    int64_t restarts = 0;
    for (const KubectlContainer& container : pod.status().containerstatuses()) {
      restarts += container.restartcount();
    }
    std::string line = absl::StrFormat("  %s: %s, %s", pod.metadata().name(), pod.status().phase(),
                                       Counted(static_cast<uint64_t>(restarts), "restart"));
    for (const PodNote& note : NotesOf(pod)) absl::StrAppend(&line, "; ", note.text);
    lines.push_back(line + "\n");
  }
  std::sort(lines.begin(), lines.end());
  return absl::StrJoin(lines, "");
}

absl::Status DeleteRun(const std::string& run, bool now, Kubectl* kubectl) {
  KubectlList objects;
  constexpr char kKinds[] = "jobs.batch,services,configmaps,statefulsets.apps";
  RETURN_IF_ERROR(kubectl->Ask({"get", kKinds, SelectorOf(run, "")}, &objects));
  if (objects.items().empty()) return NoRun(run, *kubectl);
  bool has_ended = false;
  for (const KubectlObject& object : objects.items()) {
    if (object.kind() == "Job" && object.metadata().name() == run) has_ended = HasEnded(object);
  }
  if (!has_ended && !now) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run ", run,
                     " has not ended: --now removes it, and loses the work after its last cut"));
  }
  return kubectl
      ->Run({"delete", kKinds, SelectorOf(run, ""), "--cascade=foreground", "--wait=false"})
      .status();
}

}  // namespace satrap
