// What the coordinator writes into the run's log beside cuts, topics and the end: whether a changed
// job has begun to train, and the log's compaction.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/role/ending.h"
#include "deploy/coordinator/coordinator_rep.h"

namespace satrap {

void CoordinatorEngine::Rep::AppendRunning() {
  {
    MutexLock lock(&mutex);
    if (Ended()) return;
    appending = "";
  }
  RunLogEntry entry;
  entry.mutable_running()->set_generation(envelope.generation());
  const absl::Status status = Append(entry);
  const bool known = status.ok() || EndUnlessKnown(status);
  {
    MutexLock lock(&mutex);
    // Unless the append hung, and the generation has ended meanwhile.
    if (appending.has_value()) FinishAppend();
  }
  // The first cut shows it as well.
  if (!status.ok() && known && options.warn) {
    options.warn(
        absl::StrCat("the run's log does not say that this generation runs: ", status.message()));
  }
}

void CoordinatorEngine::Rep::AppendDropped(const Ending& how) {
  RunLogEntry entry;
  entry.mutable_dropped()->set_generation(envelope.generation());
  entry.mutable_dropped()->set_change(trial.change);
  *entry.mutable_dropped()->mutable_ended() = how;
  const absl::Status status = Append(entry);
  MutexLock lock(&mutex);
  // The append hung, and the generation has ended meanwhile.
  if (!std::exchange(dropping, false)) return;
  if (status.ok()) return TakePutOffEnd();
  // Whether or not the entry is in the log, the next generation shows what becomes of the job.
  put_off.reset();
  if (absl::IsAlreadyExists(status) || absl::IsAborted(status)) {
    return End(RESTARTING, SupersededEnding());
  }
  EndGeneration(EndingOf(
      Ending::LOG_NOT_WRITTEN, COORDINATOR, 0,
      absl::StrCat(how.text(), "\n  and the run's log cannot be written: ", status.message())));
}

void CoordinatorEngine::Rep::CompactLog() {
  if (log.number() >= compact_at) {
    {
      MutexLock lock(&mutex);
      if (Ended()) return;
      appending = "";
    }
    const absl::Status status = log.Compact(static_cast<uint64_t>(options.unix_ms()));
    const bool known = status.ok() || EndUnlessKnown(status);
    {
      MutexLock lock(&mutex);
      if (appending.has_value()) FinishAppend();
    }
    if (!status.ok() && known && options.warn) {
      options.warn(absl::StrCat("the run's log is not compacted: ", status.message()));
    }
    compact_at = log.number() + options.compact_after;
  }
  const absl::Status removed = log.RemoveCompacted(kRemoveAtOnce, [this] { RestartHangClock(); });
  if (!removed.ok() && options.warn) options.warn(std::string(removed.message()));
}

}  // namespace satrap
