#include "deploy/coordinator/log/cut_commits.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/cut_name.h"
#include "common/checkpoint/entries/run_end.h"
#include "common/role/ending.h"

namespace satrap {
namespace {

CommitCutAnswer Abandoned(const absl::Status& why) {
  CommitCutAnswer answer;
  answer.set_outcome(OUTCOME_DONE);
  answer.set_abandoned(std::string(why.message()));
  return answer;
}

bool IsNewer(const std::string& cut, const RunLog& log) {
  const CutEntry* newest = log.last_cut();
  return newest == nullptr || ParseCutName(cut) > ParseCutName(newest->cut());
}

}  // namespace

CutCommits::CutCommits(CoordinatorState* state, Host* host, const RunLog* log,
                       const CutFolders* cut_folders, const Envelope& run, KillPoints* kill_points)
    : state_(state),
      host_(host),
      log_(log),
      cut_folders_(cut_folders),
      run_id_(run.run_id()),
      generation_(run.generation()),
      kill_points_(kill_points) {}

absl::optional<absl::StatusOr<CommitCutAnswer>> CutCommits::Commit(
    const CommitCutRequest& request) {
  absl::StatusOr<CutEntry> cut = Check(request);
  // A file of the cut is damaged or cannot be read. The work is still in the tables, so the cut is
  // abandoned, like a cut that cannot be written.
  if (absl::IsDataLoss(cut.status()))
    return absl::StatusOr<CommitCutAnswer>(Abandoned(cut.status()));
  absl::Status status = cut.status();
  if (status.ok()) status = BeginAppend(request, &*cut);
  if (status.ok()) return Append(request, *cut);
  MutexLock lock(&state_->mutex);
  // The run is ending, and nobody is told of that before the log has the end.
  if (state_->end.is_linking()) return absl::nullopt;
  return absl::StatusOr<CommitCutAnswer>(status);
}

// DATA_LOSS: a file of the cut is damaged or cannot be read.
absl::StatusOr<CutEntry> CutCommits::Check(const CommitCutRequest& request) const {
  {
    MutexLock lock(&state_->mutex);
    if (state_->end.has_ended()) return state_->end.EndedError();
    if (state_->end.state() != RUNNING) {
      return absl::FailedPreconditionError("the run has not begun yet");
    }
  }
  // Check this before the files, because those of an older cut may have been removed.
  if (ParseCutName(request.cut()).has_value() && !IsNewer(request.cut(), *log_)) {
    return absl::FailedPreconditionError(absl::StrCat(
        request.cut(), " is not newer than ", log_->last_cut()->cut(), ", which is committed"));
  }
  ASSIGN_OR_RETURN(CutEntry cut, cut_folders_->Check(request.cut()));
  cut.set_best(request.best());
  cut.set_last(request.last());
  cut.set_leave(request.leave());
  cut.set_seconds(request.seconds());
  return cut;
}

// From now on the generation cannot end until the entry is appended or the append has failed.
absl::Status CutCommits::BeginAppend(const CommitCutRequest& request, CutEntry* cut) {
  MutexLock lock(&state_->mutex);
  if (state_->end.has_ended()) return state_->end.EndedError();
  if (request.leave() && !state_->wishes.leaves()) {
    return absl::InvalidArgumentError("leave: nobody has asked for the end of training");
  }
  if (request.leave() || request.last()) {
    const CutEntry::LeftFor left_for = state_->wishes.left_for(request.leave());
    if (left_for != CutEntry::NOT_SAID) cut->set_left_for(left_for);
  }
  return state_->end.BeginAppend(absl::StrCat(request.cut(), " is committed"));
}

absl::optional<absl::StatusOr<CommitCutAnswer>> CutCommits::Append(const CommitCutRequest& request,
                                                                   const CutEntry& cut) {
  RunLogEntry entry;
  *entry.mutable_cut() = cut;
  if (kill_points_ != nullptr) kill_points_->Reach(KillPoint::COORDINATOR_BEFORE_LINK);
  const absl::Status status = host_->Append(entry);
  if (status.ok() && kill_points_ != nullptr) {
    kill_points_->Reach(KillPoint::COORDINATOR_AFTER_LINK);
  }
  bool scale = false;
  {
    MutexLock lock(&state_->mutex);
    // The append hung, so the generation has ended and its end has been reported. The next
    // coordinator will see whether the entry is in the log.
    if (!state_->end.appends()) return absl::nullopt;
    if (status.ok()) {
      OnAppended(request, log_->entries().back());
      scale = request.leave() && state_->wishes.scales() && !state_->wishes.stops();
    }
  }
  const bool known = status.ok() || EndUnlessKnown(status);
  if (scale) AnnounceSize();
  {
    MutexLock lock(&state_->mutex);
    state_->end.FinishAppend();
  }
  if (!known) return absl::nullopt;
  if (absl::IsAlreadyExists(status)) {
    return absl::StatusOr<CommitCutAnswer>(absl::FailedPreconditionError(status.message()));
  }
  // The disk may be full at the moment, or the size of files may be limited. The work is still in
  // the tables.
  if (!status.ok()) return absl::StatusOr<CommitCutAnswer>(Abandoned(status));
  CommitCutAnswer answer;
  answer.set_outcome(OUTCOME_DONE);
  return absl::StatusOr<CommitCutAnswer>(std::move(answer));
}

void CutCommits::OnAppended(const CommitCutRequest& request, const RunLogEntry& entry) {
  const CutEntry& cut = entry.cut();
  state_->last_cut = cut;
  state_->last_cut_unix_ms = static_cast<int64_t>(entry.unix_ms());
  state_->end.OnCut();
  state_->wishes.Fulfil(request.wish());
  if (request.last()) {
    state_->training_is_over = true;
    state_->wishes.FulfilAll();  // there is nothing left to cut
  }
  if (!request.leave() && !request.last()) return;
  if (state_->wishes.stops()) {
    // The stop may have come while the entry was being appended. Then the entry does not record it.
    state_->end.SetRunEnd(STOPPED, StoppedAfter(cut));
  } else if (state_->wishes.left_for(request.leave()) != CutEntry::MOVE) {
    return;
  } else if (cut.left_for() == CutEntry::MOVE) {
    MoveAfter(cut);
  } else {
    // The process was asked to leave while the entry was being appended. So the entry does not
    // record the move.
    state_->end.EndMoved(state_->wishes.move());
  }
}

// The cut's entry records the move, so the next coordinator does not count it as a failure.
void CutCommits::MoveAfter(const CutEntry& cut) {
  Ending moved = state_->wishes.move();
  absl::StrAppend(moved.mutable_text(), "; the run continues from ", cut.cut(),
                  ", and nothing is lost");
  moved.set_loss(Ending::NOTHING);
  state_->end.SetEnd(RESTARTING, std::move(moved));
}

// Appends the announcement of the new size. The coordinator of the next generation takes the job
// from it. This runs in the task that has appended the cut, so no other entry of this process comes
// between the cut and the announcement. If the announcement cannot be written, the generation still
// ends, because the ranks have left. That is not a failure, since the log has their cut
// (RunLog::has_left). The next generation has the size that the log says; if that is the old one,
// `satrap scale` makes its wish again.
void CutCommits::AnnounceSize() {
  RunLogEntry entry;
  GenerationEntry* next = entry.mutable_generation();
  next->set_generation(generation_ + 1);
  next->set_run_id(run_id_);
  next->set_cut(log_->next_start());
  next->set_began(BEGAN_SCALE_ANNOUNCED);
  next->set_submission(SubmissionOf(log_->entries()));
  {
    MutexLock lock(&state_->mutex);
    *next->mutable_job() = state_->wishes.next_job();
  }
  const absl::Status status = host_->Append(entry);
  const bool absent = !status.ok() && host_->IsAbsent(status);
  Ending ending;
  if (status.ok()) {
    ending = EndingOf(Ending::ASKED, absl::StrCat("the run changes its size after ", next->cut()));
  } else if (absl::IsAlreadyExists(status) || absl::IsAborted(status)) {
    ending = SupersededEnding();
  } else {
    ending = EndingOf(
        Ending::LOG_NOT_WRITTEN,
        absl::StrCat("the run continues from ", next->cut(), ", and nothing is lost",
                     absent ? ", because its change of size cannot be written into its log: "
                            : ", but its change of size may not be in its log: ",
                     status.message()));
  }
  ending.set_loss(Ending::NOTHING);
  MutexLock lock(&state_->mutex);
  // If the append hung, the generation has ended already.
  if (state_->end.appends()) state_->end.SetEnd(RESTARTING, std::move(ending));
}

bool CutCommits::EndUnlessKnown(const absl::Status& error) {
  const bool absent = host_->IsAbsent(error);
  MutexLock lock(&state_->mutex);
  return state_->end.EndUnlessKnown(error, absent);
}

}  // namespace satrap
