#include "deploy/coordinator/log/generation_log.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/role/ending.h"
#include "deploy/coordinator/claim/generation_claim.h"

namespace satrap {

GenerationLog::GenerationLog(CoordinatorState* state, RunLog log, GenerationLogOptions options)
    : state_(state),
      options_(std::move(options)),
      log_(std::move(log)),
      compact_at_(log_.compacted_number() + options_.compact_after) {}

absl::Status GenerationLog::Append(RunLogEntry entry) {
  entry.set_unix_ms(static_cast<uint64_t>(options_.unix_ms()));
  return log_.Append(entry);
}

bool GenerationLog::IsAbsent(const absl::Status& status) const {
  if (absl::IsAlreadyExists(status)) return true;
  const absl::StatusOr<bool> foreign = log_.HasForeignEntry();
  return foreign.ok() && !*foreign;
}

bool GenerationLog::EndUnlessKnown(const absl::Status& error) {
  const bool absent = IsAbsent(error);
  MutexLock lock(&state_->mutex);
  return state_->end.EndUnlessKnown(error, absent);
}

void GenerationLog::FinishAppend() {
  MutexLock lock(&state_->mutex);
  state_->end.FinishAppend();
}

void GenerationLog::Warn(const char* what, const absl::Status& status) const {
  if (options_.warn) options_.warn(absl::StrCat(what, status.message()));
}

bool GenerationLog::HasCommitted() const {
  state_->AssertHeld();
  return state_->last_cut.has_value() && state_->last_cut->generation() == options_.generation;
}

absl::Status GenerationLog::EndedStatus() const {
  MutexLock lock(&state_->mutex);
  if (!state_->end.has_ended() && !state_->end.is_linking()) return absl::OkStatus();
  return state_->end.EndedError();
}

absl::Status GenerationLog::AppendTopics(const TopicsEntry& added) {
  {
    MutexLock lock(&state_->mutex);
    const absl::Status begun = state_->end.BeginAppend("the topics are fixed");
    if (!begun.ok()) return begun;
  }
  RunLogEntry entry;
  *entry.mutable_topics() = added;
  const absl::Status status = Append(entry);
  if (!status.ok()) EndUnlessKnown(status);
  FinishAppend();
  const absl::Status ended = EndedStatus();
  return ended.ok() ? status : ended;
}

// Members train once they have been told RUNNING, and a job that has trained must not be dropped
// even if this process dies at once. So the entry is appended before any member is told.
void GenerationLog::AppendRunningAndBegin() {
  {
    MutexLock lock(&state_->mutex);
    // If a member has failed meanwhile, either the generation has ended or its job is being
    // dropped.
    if (!state_->end.may_begin() || !state_->end.BeginAppend("").ok()) return;
  }
  RunLogEntry entry;
  entry.mutable_running()->set_generation(options_.generation);
  const absl::Status status = Append(entry);
  const bool known = status.ok() || EndUnlessKnown(status);
  MutexLock lock(&state_->mutex);
  // The append hung, and the generation ended meanwhile.
  if (!state_->end.appends()) return;
  if (status.ok()) {
    state_->end.Begin();
  } else if (known) {
    state_->end.EndByLoss(EndingOf(
        Ending::LOG_NOT_WRITTEN, COORDINATOR, 0,
        absl::StrCat(
            "coordinator: the beginning of training cannot be written into the run's log: ",
            status.message())));
  }
  state_->end.FinishAppend();
}

// Only the next generation uses this entry.
void GenerationLog::AppendComplete() {
  {
    MutexLock lock(&state_->mutex);
    // If a cut was committed meanwhile, append nothing: the cut may have to stay the newest entry.
    if (HasCommitted() || !state_->end.BeginAppend("").ok()) return;
  }
  RunLogEntry entry;
  entry.mutable_complete()->set_generation(options_.generation);
  const absl::Status status = Append(entry);
  const bool known = status.ok() || EndUnlessKnown(status);
  FinishAppend();
  if (!status.ok() && known)
    Warn("cannot write into the run's log that all members are there: ", status);
}

void GenerationLog::AppendDropped(const std::string& change, const Ending& how) {
  RunLogEntry entry;
  entry.mutable_dropped()->set_generation(options_.generation);
  entry.mutable_dropped()->set_change(change);
  *entry.mutable_dropped()->mutable_ended() = how;
  const absl::Status status = Append(entry);
  MutexLock lock(&state_->mutex);
  state_->end.OnDropAppended(status, how);
}

void GenerationLog::Compact(const std::function<void()>& begins) {
  if (log_.number() >= compact_at_) {
    {
      MutexLock lock(&state_->mutex);
      if (!state_->end.BeginAppend("").ok()) return;
    }
    const absl::Status status = log_.Compact(static_cast<uint64_t>(options_.unix_ms()));
    const bool known = status.ok() || EndUnlessKnown(status);
    FinishAppend();
    if (!status.ok() && known) Warn("the run's log is not compacted: ", status);
    compact_at_ = log_.number() + options_.compact_after;
  }
  const absl::Status removed = log_.RemoveCompacted(kRemoveAtOnce, begins);
  if (!removed.ok()) Warn("", removed);
}

void GenerationLog::LookForOtherCoordinators() {
  const absl::StatusOr<bool> foreign = log_.HasForeignEntry();
  MutexLock lock(&state_->mutex);
  state_->looks_at_log = false;
  // If the folder cannot be read now, the next check may succeed.
  if (foreign.ok() && *foreign) state_->end.EndSuperseded();
}

}  // namespace satrap
