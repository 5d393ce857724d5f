#include "deploy/coordinator/members/places.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/role/ending.h"
#include "common/role/protocol_fingerprint.h"
#include "common/role/role_flags.h"

namespace satrap {

Places::Places(CoordinatorState* state, const JobConfig& job, PlacesOptions options,
               int64_t start_us, int64_t lacked_us)
    : state_(state),
      options_(std::move(options)),
      last_tick_us_(start_us),
      attendance_(start_us, lacked_us, options_.start_timeout_ms * 1000),
      members_(job) {}

// Why the process must not take part, whatever its index is; empty if there is no reason.
std::string Places::WhyWait(const RegisterRequest& request) const {
  const bool other_protocol = request.has_protocol() && request.protocol() != ProtocolFingerprint();
  const bool other_build =
      !options_.build.empty() && !request.build().empty() && request.build() != options_.build;
  if (!other_protocol && !other_build) return "";
  const Member& member = request.member();
  return absl::StrCat(MemberName(member.role(), static_cast<int>(member.index())),
                      " was built from other sources than the coordinator: the processes of a run "
                      "must be of one build");
}

absl::StatusOr<std::string> Places::Register(const RegisterRequest& request, int64_t now_us) {
  state_->AssertHeld();
  std::string why_wait = WhyWait(request);
  if (!why_wait.empty() && request.holder().empty()) return absl::InvalidArgumentError(why_wait);
  // A process that has just been started must not join a generation whose end is decided.
  if (state_->end.state() == RESTARTING || state_->end.is_linking()) {
    why_wait = "this generation is over";
  }
  if (why_wait.empty()) {
    RETURN_IF_ERROR(members_.Register(request, AwakeUs(now_us), &why_wait));
  }
  waiting_.OnAsked(request, why_wait, now_us);
  return why_wait;
}

absl::StatusOr<Heard> Places::Heartbeat(const HeartbeatRequest& request, int64_t now_us) {
  state_->AssertHeld();
  ASSIGN_OR_RETURN(Standing standing, members_.Heartbeat(request, AwakeUs(now_us), MayReplace()));
  Heard heard;
  if (standing.spare.has_value()) {
    heard.answer.emplace();
    heard.answer->set_state(state_->end.state());
    heard.answer->set_wait(true);
    *heard.answer->mutable_ending() = *std::move(standing.spare);
  } else if (standing.conflict.has_value()) {
    state_->end.EndByLoss(*std::move(standing.conflict));
  } else if (request.leaving()) {
    return Leave(request, now_us);
  }
  return heard;
}

Heard Places::Leave(const HeartbeatRequest& request, int64_t now_us) {
  // In a local run, a signal to a role asks the whole run to stop.
  if (!options_.in_pods || state_->end.has_ended() || state_->end.is_linking()) return Heard();
  const int index = static_cast<int>(request.index());
  const std::string name = MemberName(request.role(), index);
  Heard heard;
  if (state_->end.state() == RUNNING) {
    heard.moves =
        EndingOf(Ending::MOVED, request.role(), index, absl::StrCat(name, " leaves its machine"));
    return heard;
  }
  // If all members are ready, RUNNING is about to come. The member's next heartbeat then says again
  // that it leaves.
  if (!state_->end.may_begin() || state_->begins) return heard;
  NoteAttendance(now_us);
  members_.Free(request.role(), request.index());
  heard.answer.emplace();
  heard.answer->set_state(RESTARTING);
  *heard.answer->mutable_ending() =
      EndingOf(Ending::MOVED, request.role(), index,
               absl::StrCat(name,
                            " leaves its machine before training has begun, and another process "
                            "may take its place"));
  return heard;
}

FailAnswer Places::Fail(const FailRequest& request, int64_t now_us, std::string* stranger) {
  state_->AssertHeld();
  const int index = static_cast<int>(request.index());
  Ending failure =
      EndingOf(Ending::MEMBER_FAILED, request.role(), index,
               absl::StrCat(MemberName(request.role(), index), ": ", request.ending().text()));
  failure.set_advice(request.ending().advice());
  failure.set_kind(request.ending().kind());
  GenerationEnd& end = state_->end;
  if (!end.has_ended() && !end.is_linking() && !members_.IsOfMember(request, AwakeUs(now_us))) {
    // The sender will be started again. If the member is dead, the new process ends the generation
    // with its first heartbeat.
    *stranger = absl::StrCat("a process that is no member has failed: ", failure.text());
    FailAnswer again;
    again.set_state(RESTARTING);
    *again.mutable_ending() = std::move(failure);
    return again;
  }
  end.EndBy(std::move(failure));
  // The failed member exits now. So the coordinator need not wait until this member has been told
  // that the generation has ended.
  members_.SetTold(request.role(), request.index());
  return end.Told();
}

// If a tick is late, the process was suspended and could not receive heartbeats. That time does not
// count as silence of the members.
int64_t Places::StallUs(int64_t now_us) const {
  return std::max<int64_t>(0, now_us - last_tick_us_ - 2 * kTickUs);
}

int64_t Places::OnTick(int64_t now_us) {
  state_->AssertHeld();
  const int64_t stall_us = StallUs(now_us);
  last_tick_us_ = now_us;
  return stall_us;
}

void Places::Check(int64_t now_us, int64_t stall_us) {
  state_->AssertHeld();
  const int64_t timeout_us = options_.heartbeat_timeout_ms * 1000;
  NoteAttendance(now_us);
  absl::optional<Ending> lost = members_.FindSilent(now_us, stall_us, timeout_us);
  if (lost.has_value() && MayReplace()) {
    // The members hold nothing yet that could be lost. So free their places for other processes.
    members_.FreeSilent(now_us, timeout_us);
  } else if (lost.has_value()) {
    state_->end.EndByLoss(*std::move(lost));
  }
  NoteAttendance(now_us);
  if (state_->end.state() != STARTING || !attendance_.IsOverdue(now_us)) return;
  Ending lacks =
      EndingOf(Ending::MEMBER_LOST, absl::StrCat("after ", options_.start_timeout_ms / 1000,
                                                 " s there is still no ", members_.Unheard()));
  // In pods the run ends for good, because the members that are there hold resources for which
  // another run may be waiting.
  options_.in_pods ? state_->end.EndForGood(std::move(lacks))
                   : state_->end.EndByLoss(std::move(lacks));
}

void Places::AddTo(StatusAnswer* answer, int64_t now_us) const {
  state_->AssertHeld();
  members_.AddTo(answer, now_us);
  waiting_.AddTo(answer, now_us);
}

}  // namespace satrap
