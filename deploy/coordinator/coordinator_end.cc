// How a generation ends, and what that costs.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"
#include "common/role/cause_table.h"
#include "common/role/ending.h"
#include "deploy/coordinator/coordinator_rep.h"
#include "deploy/coordinator/lost_work.h"

namespace satrap {

Ending SupersededEnding() {
  return EndingOf(Ending::SUPERSEDED, "another coordinator has begun a later generation");
}

bool CoordinatorEngine::Rep::PutOff(RunState end, const Ending& how, void (Rep::*again)(Ending)) {
  if (!appending.has_value() && !dropping) return false;
  if (!put_off.has_value()) put_off = PutOffEnd{end, how, again};
  return true;
}

void CoordinatorEngine::Rep::End(RunState end, Ending how) {
  if (Ended() || PutOff(end, how, nullptr)) return;
  state = end;
  ending = std::move(how);
}

void CoordinatorEngine::Rep::EndWithoutLastCut(Ending how) {
  if (Ended() || PutOff(STOPPED, how, &Rep::EndWithoutLastCut)) return;
  if (uncertain.has_value()) {
    absl::StrAppend(how.mutable_text(), "; whether ", *uncertain,
                    " is not known here: `satrap resume` finds out");
  } else {
    AddLostWork(&how);
  }
  End(STOPPED, std::move(how));
}

void CoordinatorEngine::Rep::EndBy(Ending how) {
  how.set_before_ready(state == STARTING);
  if (!NoRestartCures(how, ended_before)) return EndGeneration(std::move(how));
  if (RuleOf(how).follows == Follows::kRunEndsIfRepeated) {
    absl::StrAppend(
        how.mutable_text(),
        "\n  the generation before ended by the same before all roles were ready, so no "
        "restart cures it: ",
        RuleOf(how).cure);
  }
  EndForGood(std::move(how));
}

void CoordinatorEngine::Rep::EndGeneration(Ending how) {
  how.set_before_ready(state == STARTING);
  // An entry that may be in the log may be a cut, which gives the run its restarts again, or its
  // end. The next coordinator sees, and judges.
  const bool may_restart = restarts_without_cut < job.max_restarts() || uncertain.has_value();
  // Whoever stops a run does not want it to begin again for its last cut.
  const RunState end = wishes.stops() ? STOPPED : may_restart ? RESTARTING : FAILED;
  if (Ended() || PutOff(end, how, &Rep::EndGeneration)) return;
  if (end == STOPPED) {
    how.set_text(absl::StrCat("stopped, but ", how.text()));
    return EndWithoutLastCut(std::move(how));
  }
  if (end == RESTARTING) return End(RESTARTING, std::move(how));
  if (job.max_restarts() > 0) {
    absl::StrAppend(how.mutable_text(), "\n  and the run has restarted ",
                    Counted(static_cast<uint64_t>(job.max_restarts()), "time"),
                    " without a cut between (max_restarts): ", recent_causes);
  }
  End(FAILED, std::move(how));
}

void CoordinatorEngine::Rep::EndForGood(Ending how) {
  const bool drops = state == STARTING && trial.MayBeTheCause(how);
  // A run in progress goes on as it was; whoever resumes one with another job is told.
  const RunState end = drops && !trial.resumed ? RESTARTING : FAILED;
  if (!drops) return End(FAILED, std::move(how));
  if (Ended() || PutOff(end, how, &Rep::EndForGood)) return;
  dropping = true;
  OnDisk([this, how] { AppendDropped(how); });
  absl::StrAppend(how.mutable_text(), "\n  the change of the job is dropped: ", trial.change,
                  end == FAILED ? "; the next `satrap resume` has the earlier job" : "");
  put_off = PutOffEnd{end, std::move(how), nullptr};
}

absl::Status CoordinatorEngine::Rep::EndedError() const {
  switch (state) {
    case FINISHED:
      return absl::FailedPreconditionError("the run has finished");
    case FAILED:
      return absl::FailedPreconditionError(absl::StrCat("the run has failed: ", ending.text()));
    default:
      return absl::FailedPreconditionError(
          absl::StrCat("this generation is over: ", ending.text()));
  }
}

void CoordinatorEngine::Rep::AddLostWork(Ending* how) const {
  TrainedSince trained;
  if (last_cut.has_value() && last_cut->generation() == envelope.generation()) {
    trained.own_cut = last_cut;
  }
  trained.start_cut = cut_folder.substr(cut_folder.rfind('/') + 1);
  trained.start_step = position.step();
  trained.step = train.step();
  satrap::AddLostWork(trained, how);
}

}  // namespace satrap
