// Processes that go elsewhere, as when their machine is drained. The run goes on without a failure:
// with a last cut and the next generation if it trains, and in the same generation before that.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/role/ending.h"
#include "common/role/role_flags.h"
#include "deploy/coordinator/coordinator_rep.h"

namespace satrap {

absl::optional<HeartbeatAnswer> CoordinatorEngine::Rep::Leave(const HeartbeatRequest& request) {
  // Locally a signal asks the whole run to stop.
  if (!options.in_pods || end.has_ended() || end.is_linking()) return absl::nullopt;
  const int index = static_cast<int>(request.index());
  const std::string name = MemberName(request.role(), index);
  if (end.state() == RUNNING) {
    Move(EndingOf(Ending::MOVED, request.role(), index, absl::StrCat(name, " goes elsewhere")));
    return absl::nullopt;
  }
  // If all are ready, RUNNING is about to come, and the member says once more that it leaves.
  if (!end.may_begin() || begins) return absl::nullopt;
  NoteAttendance(executor->NowUs());
  members.Free(request.role(), request.index());
  HeartbeatAnswer answer;
  answer.set_state(RESTARTING);
  *answer.mutable_ending() =
      EndingOf(Ending::MOVED, request.role(), index,
               absl::StrCat(name,
                            " goes elsewhere before training has begun, and another process "
                            "may take its place"));
  return answer;
}

void CoordinatorEngine::Rep::Move(const Ending& how) {
  if (end.has_ended() || end.is_linking()) return;
  if (end.state() == STARTING || !takes_cuts()) {
    // This generation has trained nothing that is not in a cut.
    return end.EndMoved(how);
  }
  if (!wishes.AddMove(how)) return;
  std::weak_ptr<Rep> weak = weak_from_this();
  executor->PostAfter(static_cast<int64_t>(job.stop_seconds() * 1e6), [weak] {
    const std::shared_ptr<Rep> rep = weak.lock();
    if (rep != nullptr) rep->MoveInTime();
  });
}

void CoordinatorEngine::Rep::MoveInTime() {
  MutexLock lock(&mutex);
  // A stop that has joined has a time of its own.
  if (wishes.stops()) return;
  Ending how = wishes.move();
  absl::StrAppend(how.mutable_text(), ", without a last cut: none was committed within ",
                  job.stop_seconds(), " s (stop_seconds)");
  end.EndMoveWithoutCut(std::move(how));
}

// Before training begins nothing is lost with a member, and whoever replaces it may take its place.
void CoordinatorEngine::Rep::OnSilent(Ending lost, int64_t now_us) {
  if (!MayReplace()) return end.EndByLoss(std::move(lost));
  members.FreeSilent(now_us, options.timeouts.heartbeat_timeout_ms * 1000);
}

void CoordinatorEngine::Move() {
  MutexLock lock(&rep_->mutex);
  rep_->Move(EndingOf(Ending::MOVED, COORDINATOR, 0, "the coordinator goes elsewhere"));
}

}  // namespace satrap
