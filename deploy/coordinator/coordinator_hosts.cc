// The services that the engine provides to GenerationEnd, CutCommits and RunTopics.

#include <utility>

#include "deploy/coordinator/coordinator_rep.h"
#include "deploy/coordinator/ending/lost_work.h"

namespace satrap {

void CoordinatorEngine::Rep::AddLostWork(Ending* how) const {
  TrainedSince trained;
  if (HasCommitted()) trained.own_cut = last_cut;
  trained.start_cut = cut_folder.substr(cut_folder.rfind('/') + 1);
  trained.start_step = position.step();
  trained.step = train.step();
  satrap::AddLostWork(trained, how);
}

void CoordinatorEngine::Rep::AppendDropped(const std::string& change, const Ending& how) {
  OnDisk([this, change, how] { RunAppendDropped(change, how); });
}

absl::Status CoordinatorEngine::Rep::Append(RunLogEntry entry) {
  entry.set_unix_ms(static_cast<uint64_t>(options.unix_ms()));
  return log.Append(entry);
}

bool CoordinatorEngine::Rep::IsAbsent(const absl::Status& status) const {
  if (absl::IsAlreadyExists(status)) return true;
  const absl::StatusOr<bool> foreign = log.HasForeignEntry();
  return foreign.ok() && !*foreign;
}

bool CoordinatorEngine::Rep::EndUnlessKnown(const absl::Status& status) {
  const bool absent = IsAbsent(status);
  MutexLock lock(&mutex);
  return end.EndUnlessKnown(status, absent);
}

void CoordinatorEngine::Rep::FinishAppend() {
  MutexLock lock(&mutex);
  end.FinishAppend();
}

absl::Status CoordinatorEngine::Rep::AppendTopics(const TopicsEntry& added) {
  {
    MutexLock lock(&mutex);
    const absl::Status begun = end.BeginAppend("the topics are fixed");
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

void CoordinatorEngine::Rep::EndForTopics(Ending how) {
  MutexLock lock(&mutex);
  end.EndBy(std::move(how));
}

absl::Status CoordinatorEngine::Rep::EndedStatus() {
  MutexLock lock(&mutex);
  return end.has_ended() || end.is_linking() ? end.EndedError() : absl::OkStatus();
}

bool CoordinatorEngine::AsksBroker() const { return rep_->topics.asks_broker(); }

}  // namespace satrap
