// What the coordinator writes into the run's log besides cuts, topics and the end: whether a
// changed job has begun to train, and the log's compaction.

#include <utility>

#include "absl/strings/str_cat.h"
#include "deploy/coordinator/coordinator_rep.h"

namespace satrap {

void CoordinatorEngine::Rep::AppendRunning() {
  {
    MutexLock lock(&mutex);
    if (!end.BeginAppend("").ok()) return;
  }
  RunLogEntry entry;
  entry.mutable_running()->set_generation(envelope.generation());
  const absl::Status status = Append(entry);
  const bool known = status.ok() || EndUnlessKnown(status);
  FinishAppend();
  // Only a warning, because the first cut shows it as well.
  if (!status.ok() && known && options.warn) {
    options.warn(
        absl::StrCat("the run's log does not say that this generation runs: ", status.message()));
  }
}

void CoordinatorEngine::Rep::RunAppendDropped(const std::string& change, const Ending& how) {
  RunLogEntry entry;
  entry.mutable_dropped()->set_generation(envelope.generation());
  entry.mutable_dropped()->set_change(change);
  *entry.mutable_dropped()->mutable_ended() = how;
  const absl::Status status = Append(entry);
  MutexLock lock(&mutex);
  end.OnDropAppended(status, how);
}

void CoordinatorEngine::Rep::CompactLog() {
  if (log.number() >= compact_at) {
    {
      MutexLock lock(&mutex);
      if (!end.BeginAppend("").ok()) return;
    }
    const absl::Status status = log.Compact(static_cast<uint64_t>(options.unix_ms()));
    const bool known = status.ok() || EndUnlessKnown(status);
    FinishAppend();
    if (!status.ok() && known && options.warn) {
      options.warn(absl::StrCat("the run's log is not compacted: ", status.message()));
    }
    compact_at = log.number() + options.compact_after;
  }
  const absl::Status removed = log.RemoveCompacted(kRemoveAtOnce, [this] { RestartHangClock(); });
  if (!removed.ok() && options.warn) options.warn(std::string(removed.message()));
}

}  // namespace satrap
