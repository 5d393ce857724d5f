#include "deploy/submit/run_reader.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/role/random_id.h"
#include "common/thread/clock.h"
#include "deploy/submit/manifests.h"
#include "deploy/submit/pod_notes.h"
#include "deploy/submit/run_objects.h"
#include "deploy/submit/submission.h"
#include "deploy/submit/submitted_run.h"
#include "proto/kubectl.pb.h"

namespace satrap {
namespace {

constexpr int64_t kReaderPollMs = 500;

// Why the Job cannot make its pod, for example because of a quota. Empty also if kubectl fails.
std::vector<PodNote> NotesOfJob(const std::string& job, Kubectl* kubectl) {
  KubectlObject owner;
  const absl::Status asked = kubectl->Ask({"get", "jobs.batch", job, "--ignore-not-found"}, &owner);
  if (!asked.ok() || !owner.has_metadata()) return {};
  KubectlList parts;
  *parts.add_items() = std::move(owner);
  return NotesOfMissing(parts, kubectl);
}

// Waits for the end of the Job's pod. Returns its log.
absl::StatusOr<std::string> LogOf(const std::string& job, Kubectl* kubectl,
                                  const std::function<void(const std::string& line)>& say,
                                  const std::function<int(int64_t timeout_ms)>& wait) {
  const int64_t until_ms = MonotonicMs() + int64_t{1000} * kReaderSeconds;
  PodWatch watch;
  std::vector<std::string> told;
  while (true) {
    KubectlList parts;
    RETURN_IF_ERROR(
        kubectl->Ask({"get", "pods", absl::StrCat("--selector=job-name=", job)}, &parts));
    for (const KubectlObject& pod : parts.items()) {
      const std::string& phase = pod.status().phase();
      if (phase != "Succeeded" && phase != "Failed") continue;
      if (phase == "Failed") {
        const std::string words = LastWordsOf(pod);
        return absl::FailedPreconditionError(
            words.empty() ? absl::StrCat("the pod ", pod.metadata().name(), " has failed") : words);
      }
      return kubectl->Run({"logs", pod.metadata().name(), "--container=satrap"});
    }
    std::vector<PodNote> notes = watch.Notes(parts, MonotonicMs());
    if (parts.items().empty()) notes = NotesOfJob(job, kubectl);
    for (const PodNote& note : notes) {
      const std::string line = LineOf(note);
      if (note.is_final) return absl::FailedPreconditionError(WithCures({note}));
      if (std::find(told.begin(), told.end(), line) != told.end()) continue;
      told.push_back(line);
      say(line);
    }
    if (MonotonicMs() >= until_ms) {
      return absl::DeadlineExceededError(
          absl::StrCat("Job ", job, ", which reads the run's folder, has not ended within ",
                       kReaderSeconds, " s", notes.empty() ? "" : ": ", WithCures(notes)));
    }
    if (wait(kReaderPollMs) != 0) return absl::CancelledError("stopped by a signal");
  }
}

}  // namespace

absl::StatusOr<std::string> ReadInPod(const std::string& run,
                                      const std::vector<std::string>& command,
                                      const std::vector<std::string>& more, Kubectl* kubectl,
                                      const std::function<void(const std::string& line)>& say,
                                      const std::function<int(int64_t timeout_ms)>& wait) {
  ASSIGN_OR_RETURN(const RunInCluster newest, NewestSubmission(run, kubectl));
  const std::string id = absl::StrFormat("%08x", RandomId() >> 32);
  const Manifest reader = ReaderJob(newest, id, command, more);
  ASSIGN_OR_RETURN(const std::string text, PatchedText(reader, newest.template_patch, kubectl));
  RETURN_IF_ERROR(kubectl->Run({"create", "--filename=-"}, text).status());
  absl::StatusOr<std::string> log = LogOf(reader.name, kubectl, say, wait);
  // If this fails, Kubernetes removes the Job later.
  kubectl
      ->Run({"delete", absl::StrCat("jobs.batch/", reader.name), "--ignore-not-found",
             "--wait=false"})
      .IgnoreError();
  return log;
}

}  // namespace satrap
