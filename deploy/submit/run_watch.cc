#include "deploy/submit/run_watch.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/thread/clock.h"
#include "deploy/submit/pod_notes.h"
#include "deploy/submit/run_objects.h"

namespace satrap {
namespace {

constexpr int64_t kPeriodMs = 1000;
// How often to ask for the rest of a log after the run has ended.
constexpr int kMostAttempts = 10;

class Watch {
 public:
  Watch(const std::string& run, Kubectl* kubectl, const WatchOptions& options)
      : run_(run), kubectl_(kubectl), options_(options) {}

  absl::StatusOr<Watched> Run() {
    Watched watched;
    std::string uid;   // of Job RUN
    int attempts = 0;  // after the end
    while (true) {
      // Ask for the Job before the logs: if the Job has ended by then, the logs are complete.
      KubectlObject job;
      const absl::Status asked =
          kubectl_->Ask({"get", "jobs.batch", run_, "--ignore-not-found"}, &job);
      if (asked.ok() && !job.has_metadata()) {
        return absl::NotFoundError(absl::StrCat("the run ", run_, " was deleted"));
      }
      // A resume replaces the Job, and shows the story of its own submission.
      if (asked.ok() && uid.empty()) uid = job.metadata().uid();
      if (asked.ok() && job.metadata().uid() != uid) {
        return absl::NotFoundError(
            absl::StrCat("the run ", run_, " continues as a later submission; `satrap logs ",
                         RunArgument(run_, kubectl_->space()), " --follow` shows it"));
      }
      const bool has_ended = asked.ok() && HasEnded(job);
      ASSIGN_OR_RETURN(watched.signal, ShowLogs());
      if (watched.signal != 0) return watched;
      watched.failed = IsTrue(job, "Failed");
      if (has_ended && is_complete_) return watched;
      if (has_ended && ++attempts == kMostAttempts) {
        return absl::UnavailableError(
            absl::StrCat("the run ", run_, watched.failed ? " has failed" : " has ended",
                         ", but its story cannot be shown to the end; `satrap logs ",
                         RunArgument(run_, kubectl_->space()), "` tries again"));
      }
      watched.signal = options_.wait(kPeriodMs);
      if (watched.signal != 0) return watched;
    }
  }

 private:
  struct Shown {
    absl::Time last = absl::InfinitePast();  // when the last line was logged that was shown
    bool is_complete = false;
  };

  // Shows the new lines of the logs. Returns the signal that came meanwhile, or 0.
  absl::StatusOr<int> ShowLogs() {
    is_complete_ = false;
    KubectlList pods;
    if (!kubectl_->Ask({"get", "pods", SelectorOf(run_, "story")}, &pods).ok()) return 0;
    std::vector<const KubectlObject*> sorted;
    for (const KubectlObject& pod : pods.items()) sorted.push_back(&pod);
    std::sort(sorted.begin(), sorted.end(), [](const KubectlObject* a, const KubectlObject* b) {
      return a->metadata().creationtimestamp() < b->metadata().creationtimestamp();
    });
    bool is_complete = true;
    bool has_told = false;
    for (const KubectlObject* const pod : sorted) {
      if (pod->status().phase() == "Pending") continue;
      has_told = true;
      Shown& shown = shown_[pod->metadata().uid()];
      if (shown.is_complete) continue;
      ASSIGN_OR_RETURN(const Streamed streamed, ShowLog(pod->metadata().name(), &shown));
      if (streamed.signal != 0) return streamed.signal;
      shown.is_complete = streamed.succeeded() && pod->status().phase() != "Running";
      is_complete = is_complete && shown.is_complete;
    }
    is_complete_ = is_complete;
    if (!has_told) TellNotes();
    return 0;
  }

  absl::StatusOr<Streamed> ShowLog(const std::string& pod, Shown* shown) {
    std::vector<std::string> args = {"logs", "--follow", "--timestamps", pod, "--container=satrap"};
    const absl::Time before = shown->last;
    if (before != absl::InfinitePast()) {
      // The server reads whole seconds only.
      args.push_back(absl::StrCat(
          "--since-time=", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", before, absl::UTCTimeZone())));
    }
    return kubectl_->Stream(std::move(args), [&](absl::string_view line) {
      const size_t blank = line.find(' ');
      absl::Time time;
      std::string error;
      if (blank == line.npos ||
          !absl::ParseTime(absl::RFC3339_full, line.substr(0, blank), &time, &error)) {
        options_.show(line);
        return;
      }
      if (time <= before) return;
      shown->last = std::max(shown->last, time);
      options_.show(line.substr(blank + 1));
    });
  }

  void TellNotes() {
    const absl::StatusOr<KubectlList> parts = PartsOf(run_, kubectl_);
    if (!parts.ok()) return;
    std::vector<PodNote> notes = watch_.Notes(*parts, MonotonicMs());
    for (PodNote& note : NotesOfMissing(*parts, kubectl_)) notes.push_back(std::move(note));
    for (const PodNote& note : notes) {
      const std::string line = LineOf(note);
      if (told_.insert(line).second) options_.say(line);
    }
  }

  const std::string run_;
  Kubectl* const kubectl_;
  const WatchOptions& options_;
  std::map<std::string, Shown> shown_;  // by the pod's uid
  bool is_complete_ = false;  // the logs of all pods that were there were shown to the end
  PodWatch watch_;
  std::set<std::string> told_;  // lines of notes
};

}  // namespace

absl::StatusOr<Watched> WatchRun(const std::string& run, Kubectl* kubectl,
                                 const WatchOptions& options) {
  return Watch(run, kubectl, options).Run();
}

}  // namespace satrap
