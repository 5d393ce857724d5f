// What the topics of a run need of the engine.

#include "common/role/ending.h"
#include "deploy/coordinator/coordinator_rep.h"

namespace satrap {

absl::Status CoordinatorEngine::Rep::AppendTopics(const TopicsEntry& added) {
  {
    MutexLock lock(&mutex);
    if (Ended()) return EndedError();
    appending = "the topics are fixed";
  }
  RunLogEntry entry;
  *entry.mutable_topics() = added;
  const absl::Status status = Append(entry);
  if (!status.ok()) EndUnlessKnown(status);
  MutexLock lock(&mutex);
  // Unless the append hung, and the generation has ended meanwhile.
  if (appending.has_value()) FinishAppend();
  return Ended() ? EndedError() : status;
}

void CoordinatorEngine::Rep::EndForTopics(const std::string& reason, bool restart_may_cure) {
  MutexLock lock(&mutex);
  if (restart_may_cure) {
    // Only the coordinator's own trouble with the log.
    EndGeneration(EndingOf(Ending::LOG_NOT_WRITTEN, COORDINATOR, 0, reason));
  } else {
    EndForGood(EndingOf(Ending::TOPICS, reason));
  }
}

absl::Status CoordinatorEngine::Rep::EndedStatus() {
  MutexLock lock(&mutex);
  return Ended() ? EndedError() : absl::OkStatus();
}

bool CoordinatorEngine::AsksBroker() const { return rep_->topics.asks_broker(); }

}  // namespace satrap
