#include "tests/simulation/lives/sim_submissions.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/run_log.h"

namespace satrap::simulation {

SimSubmissions::SimSubmissions(const DeathPlan& deaths, const Fault* fault, SimEnds* ends,
                               std::function<void(std::string)> violated)
    : deaths_(deaths), fault_(fault), ends_(ends), violated_(std::move(violated)) {
  if (deaths_.in_pods) ends_->OnSubmission(submission_);
}

std::string SimSubmissions::PodOf(int pod) { return absl::StrCat("coordinator pod ", pod); }

void SimSubmissions::Fill(int life, FileSystem* disk, ClaimRequest* request) {
  if (deaths_.in_pods) {
    if (deaths_.MovesCoordinator(life)) ++pod_;
    request->holder = PodOf(pod_);
    if (request->next_job && !failed_) ends_->OnSubmission(++submission_);
    request->submission = submission_;
  }
  Plant(disk, /*is_stale=*/false, request);
}

void SimSubmissions::Plant(FileSystem* disk, bool is_stale, ClaimRequest* request) const {
  if (fault_ == nullptr || fault_->claim == nullptr) return;
  const auto log = RunLog::Open(request->job.run_dir(), disk);
  if (log.ok()) fault_->claim(*log, is_stale, request);
}

void SimSubmissions::WakeStale(int life, const ClaimRequest& request, FileSystem* disk) {
  if (submission_ > 1 && deaths_.HasStaleCoordinator(life)) WakeEarlier(request, disk);
  if (deaths_.HasTwinCoordinator(life)) WakeTwin(request, disk);
}

void SimSubmissions::WakeTwin(ClaimRequest request, FileSystem* disk) {
  request.holder = PodOf(pod_ - 1);
  request.next_job = false;
  request.writer = ~request.writer - 2;
  const auto log = RunLog::Open(request.job.run_dir(), disk);
  bool has_begun = false;
  for (const RunLogEntry& entry : log.ok() ? log->entries() : std::vector<RunLogEntry>()) {
    has_begun |= entry.generation().holder() == request.holder;
  }
  // A coordinator of a pod that has begun no generation may claim at once.
  if (!has_begun) return;
  Plant(disk, /*is_stale=*/true, &request);
  const auto claimed = ClaimGeneration(request, disk);
  if (!claimed.ok() || claimed->waits_to_be_asked || claimed->superseded) return;
  // A rival may have found that the run has no restart left, and ended it. Then this coordinator
  // only reports that end, and has claimed nothing.
  if (claimed->log.end() != nullptr) return;
  violated_(absl::StrCat("a coordinator that nobody has asked, of ", request.holder,
                         ", has generation ", claimed->generation));
}

void SimSubmissions::WakeEarlier(ClaimRequest request, FileSystem* disk) {
  request.submission = submission_ - 1;
  request.writer = ~request.writer - 1;
  Plant(disk, /*is_stale=*/true, &request);
  const auto claimed = ClaimGeneration(request, disk);
  // A claim fails if the disk fails.
  if (!claimed.ok() || claimed->superseded) return;
  violated_(absl::StrCat("a coordinator of submission ", submission_ - 1, " has generation ",
                         claimed->generation, " of submission ", claimed->submission));
}

void SimSubmissions::CheckRestarts(const SimLogEntries& entries) {
  int without_cut = 0;
  for (const auto& read : entries) {
    const RunLogEntry& entry = read->message;
    // The count begins anew in two cases: when the run is resumed, because a person has looked at
    // the run, and when a job that could not begin is dropped, because that loses no work. A move
    // loses no work either, so it does not count.
    const bool is_resumed = entry.generation().began() == BEGAN_RESUME;
    if (entry.has_cut() || is_resumed || entry.has_dropped()) without_cut = 0;
    if (entry.has_generation() && entry.generation().began() != BEGAN_MOVED) ++without_cut;
  }
  if (without_cut > deaths_.max_restarts + 2) {  // "scale" and "scaled" are two entries
    violated_(absl::StrCat(without_cut, " generations without a cut, with max_restarts ",
                           deaths_.max_restarts));
  }
}

}  // namespace satrap::simulation
