#include "deploy/coordinator/ending/generation_end.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/count_text.h"
#include "common/role/cause_table.h"
#include "common/role/ending.h"

namespace satrap {

Ending SupersededEnding() {
  return EndingOf(Ending::SUPERSEDED, "another coordinator has begun a later generation");
}

absl::Status GenerationEnd::EndedError() const {
  // Whoever gets this error then asks how the run ends, and is answered once the log has the end.
  if (is_linking()) {
    return absl::FailedPreconditionError(
        absl::StrCat(linking_->state == RESTARTING ? "this generation is over: " : "the run ends: ",
                     linking_->how.text()));
  }
  switch (state_) {
    case FINISHED:
      return absl::FailedPreconditionError("the run has finished");
    case FAILED:
      return absl::FailedPreconditionError(absl::StrCat("the run has failed: ", ending_.text()));
    default:
      return absl::FailedPreconditionError(
          absl::StrCat("this generation is over: ", ending_.text()));
  }
}

FailAnswer GenerationEnd::Told() const {
  const absl::optional<PutOffEnd>& due = linking_.has_value() ? linking_ : put_off_;
  FailAnswer answer;
  // An end that is due is not in the log yet. So answer RESTARTING: the role exits with 75, and
  // learns of the end when it is started again.
  answer.set_state(due.has_value() ? RESTARTING : state_);
  *answer.mutable_ending() = due.has_value() ? due->how : ending_;
  return answer;
}

void GenerationEnd::Set(RunState end, Ending how) {
  state_ = end;
  ending_ = std::move(how);
  linking_.reset();
}

bool GenerationEnd::PutOff(RunState end, const Ending& how, void (GenerationEnd::*again)(Ending)) {
  if (is_linking()) return true;  // the first cause is kept
  if (!appends() && !dropping_) return false;
  if (!put_off_.has_value()) {
    put_off_ = PutOffEnd{end, how, again};
  } else if (dropping_ && end == STOPPED && put_off_->state == RESTARTING) {
    // A stop takes precedence over going on with the earlier job. The text of the stop does not
    // mention the dropped change, because whoever reports the stop reads DROPPED in the log.
    put_off_ = PutOffEnd{end, how, nullptr};
  }
  return true;
}

void GenerationEnd::TakePutOffEnd() {
  if (!put_off_.has_value()) return;
  PutOffEnd due = *std::move(put_off_);
  put_off_.reset();
  if (due.end == nullptr) {
    End(due.state, std::move(due.how));
  } else {
    (this->*due.end)(std::move(due.how));
  }
}

void GenerationEnd::End(RunState end, Ending how) {
  if (has_ended() || PutOff(end, how, nullptr)) return;
  if (end == RESTARTING) return Set(RESTARTING, std::move(how));
  if (!uncertain_.has_value() && !disk_hangs_) {
    linking_ = PutOffEnd{end, how, nullptr};
    return host_->AppendEnd(end, how);
  }
  if (!before_.in_pods) return Set(end, std::move(how));
  // After an append whose outcome is not known, this process must not append anything. The next
  // process may.
  LeaveEndToNext("coordinator: the run's end cannot be written into its log", how);
}

void GenerationEnd::LeaveEndToNext(const std::string& why, const Ending& how) {
  Set(RESTARTING, EndingOf(Ending::LOG_NOT_WRITTEN, COORDINATOR, 0,
                           absl::StrCat(why, "; the run was about to end: ", how.text())));
}

void GenerationEnd::TakeRecorded(RunState end, Ending how) { Set(end, std::move(how)); }

void GenerationEnd::EndSuperseded() {
  if (has_ended()) return;
  if (is_linking()) return Set(RESTARTING, SupersededEnding());
  End(RESTARTING, SupersededEnding());
}

void GenerationEnd::EndMoveWithoutCut(Ending how) {
  if (has_ended() || PutOff(RESTARTING, how, &GenerationEnd::EndMoveWithoutCut)) return;
  host_->AddLostWork(&how);
  EndMoved(std::move(how));
}

void GenerationEnd::EndMoved(Ending how) {
  if (has_ended() || PutOff(RESTARTING, how, &GenerationEnd::EndMoved)) return;
  // See End.
  if (uncertain_.has_value() || disk_hangs_) return Set(RESTARTING, std::move(how));
  linking_ = PutOffEnd{RESTARTING, how, nullptr};
  host_->AppendLeft(how);
}

bool GenerationEnd::OnEndAppended(const absl::Status& status, bool absent) {
  if (!is_linking()) return false;
  if (absl::IsAlreadyExists(status) || absl::IsAborted(status)) {
    EndSuperseded();
  } else if (status.ok() || linking_->state == RESTARTING || (!absent && !before_.in_pods)) {
    // A launcher is told of the end even if the log may not have it. If a process leaves its
    // machine, the members are told of that, too. If the log does not have that move, the next
    // coordinator counts it as a failure, unless somebody else tells it of the move.
    EndWithoutLog();
  } else if (!absent) {
    LeaveEndToNext(
        absl::StrCat("coordinator: the run's end may not be in its log: ", status.message()),
        linking_->how);
  }
  return is_linking();
}

void GenerationEnd::EndWithoutLog() {
  if (!is_linking()) return;
  PutOffEnd due = *std::move(linking_);
  Set(due.state, std::move(due.how));
}

void GenerationEnd::EndWithoutLastCut(Ending how) {
  if (has_ended() || PutOff(STOPPED, how, &GenerationEnd::EndWithoutLastCut)) return;
  if (uncertain_.has_value()) {
    absl::StrAppend(how.mutable_text(), "; it is not known whether ", *uncertain_,
                    "; `satrap resume` finds out");
  } else {
    host_->AddLostWork(&how);
  }
  End(STOPPED, std::move(how));
}

void GenerationEnd::EndBy(Ending how) {
  how.set_before_ready(state_ == STARTING);
  if (!NoRestartCures(how, before_.ended)) return EndByLoss(std::move(how));
  if (RuleOf(how).follows == Follows::kRunEndsIfRepeated) {
    absl::StrAppend(how.mutable_text(),
                    "\n  the previous generation ended from the same cause, also before all roles "
                    "were ready, so no restart cures it: ",
                    RuleOf(how).cure);
  }
  EndForGood(std::move(how));
}

void GenerationEnd::EndByLoss(Ending how) {
  how.set_before_ready(state_ == STARTING);
  // If the outcome of an append is not known, the log may hold the run's end, or a cut, which gives
  // the run its restarts back. So let the next coordinator read the log and decide.
  const bool may_restart =
      before_.restarts_without_cut < before_.max_restarts || uncertain_.has_value();
  const RunState end = host_->IsStopWished() ? STOPPED : may_restart ? RESTARTING : FAILED;
  if (has_ended() || PutOff(end, how, &GenerationEnd::EndByLoss)) return;
  if (end == STOPPED) {
    how.set_text(absl::StrCat("stopped, but ", how.text()));
    return EndWithoutLastCut(std::move(how));
  }
  if (end == RESTARTING) return End(RESTARTING, std::move(how));
  if (before_.max_restarts > 0) {
    absl::StrAppend(how.mutable_text(), "\n  and the run has restarted ",
                    Counted(static_cast<uint64_t>(before_.max_restarts), "time"),
                    " without a cut in between (max_restarts): ", before_.recent_causes);
  }
  End(FAILED, std::move(how));
}

void GenerationEnd::EndForGood(Ending how) {
  const JobTrial& trial = before_.trial;
  const bool drops = state_ == STARTING && trial.MayBeTheCause(how);
  // A run in progress continues with its earlier job, but a user who resumes a run with a changed
  // job gets the failure.
  const RunState end = drops && !trial.resumed ? RESTARTING : FAILED;
  if (!drops) return End(FAILED, std::move(how));
  if (has_ended() || PutOff(end, how, &GenerationEnd::EndForGood)) return;
  dropping_ = true;
  host_->AppendDropped(trial.change, how);
  absl::StrAppend(how.mutable_text(), "\n  the change of the job is dropped: ", trial.change,
                  end == FAILED ? "; the next `satrap resume` uses the earlier job" : "");
  put_off_ = PutOffEnd{end, std::move(how), nullptr};
}

absl::Status GenerationEnd::BeginAppend(std::string what) {
  if (has_ended()) return EndedError();
  if (is_linking()) return EndedError();
  CHECK(!appends());
  appending_ = std::move(what);
  return absl::OkStatus();
}

void GenerationEnd::SetEnd(RunState end, Ending how) {
  CHECK(appends());
  state_ = end;
  ending_ = std::move(how);
}

void GenerationEnd::SetRunEnd(RunState end, Ending how) {
  CHECK(appends());
  put_off_ = PutOffEnd{end, std::move(how), nullptr};
}

void GenerationEnd::SetUncertain() {
  if (appends() && !appending_->empty()) uncertain_ = appending_;
}

bool GenerationEnd::EndUnlessKnown(const absl::Status& error, bool absent) {
  if (absl::IsAlreadyExists(error) || absl::IsAborted(error)) EndSuperseded();
  if (absent) return true;
  // If the append hung, this does nothing, because OnDiskHang has ended both the append and the
  // generation.
  SetUncertain();
  EndByLoss(
      EndingOf(Ending::LOG_NOT_WRITTEN, COORDINATOR, 0,
               absl::StrCat("coordinator: the run's log cannot be written: ", error.message())));
  return false;
}

void GenerationEnd::FinishAppend() {
  if (!appends()) return;
  appending_.reset();
  if (!dropping_) TakePutOffEnd();
}

void GenerationEnd::OnDiskHang(const std::string& hangs) {
  disk_hangs_ = true;
  if (has_ended()) return;
  if (is_linking()) {
    if (linking_->state == RESTARTING) return EndWithoutLog();
    // A launcher is soon told what was decided (EndWithoutLog), but in pods nobody is. There the
    // next coordinator finds out what the log has.
    if (before_.in_pods) LeaveEndToNext(hangs, linking_->how);
    return;
  }
  if (put_off_.has_value()) absl::StrAppend(put_off_->how.mutable_text(), "; ", hangs);
  SetUncertain();
  FinishAppend();
  // Do not drop the job: the next generation tries it again, as after any loss.
  if (std::exchange(dropping_, false)) put_off_.reset();
  EndByLoss(EndingOf(Ending::DISK_HANGS, COORDINATOR, 0, hangs));
}

void GenerationEnd::OnDropAppended(const absl::Status& status, const Ending& how) {
  // The append hung, and the generation ended meanwhile.
  if (!std::exchange(dropping_, false)) return;
  if (status.ok()) return TakePutOffEnd();
  // It is not known whether the entry is in the log. The next generation finds out whether the job
  // is dropped.
  put_off_.reset();
  if (absl::IsAlreadyExists(status) || absl::IsAborted(status)) return EndSuperseded();
  EndByLoss(EndingOf(
      Ending::LOG_NOT_WRITTEN, COORDINATOR, 0,
      absl::StrCat(how.text(), "\n  and the run's log cannot be written: ", status.message())));
}

}  // namespace satrap
