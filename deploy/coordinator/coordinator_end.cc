// How a generation ends, and what that costs.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"
#include "common/role/cause_table.h"
#include "common/role/ending.h"
#include "deploy/coordinator/coordinator_rep.h"

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

// Rank 0's last report may be a second old, so what is lost is known only roughly, or not at all.
void CoordinatorEngine::Rep::AddLostWork(Ending* how) const {
  const bool cut_here = last_cut.has_value() && last_cut->generation() == envelope.generation();
  const uint64_t step = cut_here ? last_cut->step() : position.step();
  const uint64_t lost = std::max(train.step(), step) - step;
  if (lost > 0) {
    how->set_loss(Ending::STEPS);
    how->set_lost_steps(lost);
  }
  const std::string how_much =
      lost > 0 ? absl::StrCat("about ", Counted(lost, "step")) : "at most the work";
  if (!cut_here && cut_folder.empty()) {
    absl::StrAppend(how->mutable_text(),
                    "; no cut was committed, so the run goes on from the beginning, and ", how_much,
                    " since ", lost > 1 ? "are lost" : "is lost");
    return;
  }
  const std::string name =
      cut_here ? last_cut->cut() : cut_folder.substr(cut_folder.rfind('/') + 1);
  absl::StrAppend(how->mutable_text(), "; the run goes on from ", name, " at step ", step, ", and ",
                  how_much, " since ", lost > 0 ? "are lost" : "is lost");
}

}  // namespace satrap
