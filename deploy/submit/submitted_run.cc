#include "deploy/submit/submitted_run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/config/job_change.h"
#include "common/config/job_config.h"
#include "common/config/text_format.h"
#include "deploy/submit/pod_notes.h"
#include "deploy/submit/run_objects.h"
#include "proto/control.pb.h"
#include "proto/kubectl.pb.h"

namespace satrap {
namespace {

std::string DataOf(const KubectlObject& map, absl::string_view key) {
  for (const KubectlText& entry : map.data()) {
    if (entry.name() == key) return entry.value();
  }
  return "";
}

// The ConfigMap of the newest submission; null if there is none.
const KubectlObject* NewestMap(const KubectlList& objects) {
  const KubectlObject* newest = nullptr;
  for (const KubectlObject& object : objects.items()) {
    if (object.kind() != "ConfigMap") continue;
    if (newest == nullptr || SubmissionOf(object) > SubmissionOf(*newest)) newest = &object;
  }
  return newest;
}

// The lines of kChangesAnnotation.
std::vector<std::string> ChangesOf(const KubectlObject& map) {
  return absl::StrSplit(AnnotationOf(map, kChangesAnnotation), '\n', absl::SkipEmpty());
}

// "embedding_ps.replicas" of "embedding_ps.replicas=4".
absl::string_view PathOf(absl::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

// Whether the run has finished, according to the last message of its story.
bool HasFinished(const KubectlList& objects) {
  return LastWordsOfStory(objects) == RunState_Name(FINISHED);
}

// The run that the ConfigMap of one of its submissions describes.
absl::StatusOr<RunInCluster> RunOfMap(const KubectlObject& map, const std::string& run,
                                      const std::string& space) {
  RunInCluster newest;
  const absl::Status parsed = ParseText(DataOf(map, kJobKey), kJobKey, &newest.job);
  if (!parsed.ok()) {
    return absl::InternalError(absl::StrCat("ConfigMap ", map.metadata().name(), " in ",
                                            SpaceText(space),
                                            " cannot be read: ", parsed.message()));
  }
  ResolveJob(&newest.job);
  const std::vector<std::string> changes = ChangesOf(map);
  if (!changes.empty()) {
    const absl::StatusOr<JobConfig> changed = ChangedJob(newest.job, changes);
    if (!changed.ok()) {
      return absl::InternalError(absl::StrCat("ConfigMap ", map.metadata().name(), " in ",
                                              SpaceText(space), ": ", kChangesAnnotation, ": ",
                                              changed.status().message()));
    }
    newest.job = *changed;
  }
  newest.name = run;
  newest.space = space;
  newest.image = newest.job.kubernetes().image();
  newest.template_patch = DataOf(map, kPatchKey);
  newest.run_dir = AnnotationOf(map, kRunDirAnnotation);
  newest.submission = SubmissionOf(map);
  return newest;
}

}  // namespace

absl::StatusOr<RunInCluster> NewestSubmission(const std::string& run, Kubectl* kubectl) {
  KubectlList maps;
  RETURN_IF_ERROR(kubectl->Ask({"get", "configmaps", SelectorOf(run)}, &maps));
  const KubectlObject* const map = NewestMap(maps);
  if (map == nullptr) return NoRun(run, *kubectl);
  return RunOfMap(*map, run, kubectl->space());
}

absl::StatusOr<RunInCluster> NextSubmission(const std::string& run, Kubectl* kubectl) {
  KubectlList all;
  RETURN_IF_ERROR(kubectl->Ask({"get", "jobs.batch,configmaps,pods", SelectorOf(run)}, &all));
  // Leave out what is being deleted: it may belong to a resume that could not begin.
  KubectlList objects;
  for (const KubectlObject& object : all.items()) {
    if (!IsBeingDeleted(object)) *objects.add_items() = object;
  }
  const KubectlObject* const map = NewestMap(objects);
  if (map == nullptr) return NoRun(run, *kubectl);
  const std::string argument = RunArgument(run, kubectl->space());
  const KubectlObject* const story = FindObject(objects, "Job", run);
  const KubectlObject* const members = FindObject(objects, "Job", NameOfMembersJob(run));
  const int told = story == nullptr ? 0 : SubmissionOf(*story);
  const bool is_half_made = members != nullptr && SubmissionOf(*members) > told;
  if (is_half_made && SubmissionOf(*members) == 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("the submission of run ", run, " was broken off: the same `satrap submit` ",
                     "command completes it, `satrap delete ", argument, "` removes it"));
  }
  if (!is_half_made && story != nullptr && !HasEnded(*story)) {
    return absl::UnavailableError(absl::StrCat("the run ", run, " is in progress; `satrap stop ",
                                               argument, "` lets it take a last cut and end"));
  }
  if (!is_half_made && HasFinished(objects)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run ", run, " has finished: there is nothing to resume"));
  }
  ASSIGN_OR_RETURN(RunInCluster next, RunOfMap(*map, run, kubectl->space()));
  next.submission = is_half_made ? SubmissionOf(*members) : std::max(told, SubmissionOf(*map)) + 1;
  return next;
}

absl::Status NoteChanges(const std::string& run, const std::vector<std::string>& sets,
                         Kubectl* kubectl) {
  KubectlList maps;
  RETURN_IF_ERROR(kubectl->Ask({"get", "configmaps", SelectorOf(run)}, &maps));
  const KubectlObject* const map = NewestMap(maps);
  if (map == nullptr) return NoRun(run, *kubectl);
  std::vector<std::string> changes = ChangesOf(*map);
  for (const std::string& assignment : sets) {
    const auto is_replaced = [&assignment](const std::string& earlier) {
      return PathOf(earlier) == PathOf(assignment);
    };
    changes.erase(std::remove_if(changes.begin(), changes.end(), is_replaced), changes.end());
    changes.push_back(assignment);
  }
  return kubectl
      ->Run({"annotate", absl::StrCat("configmaps/", map->metadata().name()),
             absl::StrCat(kChangesAnnotation, "=", absl::StrJoin(changes, "\n")), "--overwrite"})
      .status();
}

}  // namespace satrap
