// The coordinator's changes of the run's log, except for cuts, topics and the end: the entry which
// says that a changed job has begun to train, and the log's compaction.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/role/ending.h"
#include "deploy/coordinator/coordinator_rep.h"

namespace satrap {

// Members train once they have been told RUNNING, and a job that has trained must not be dropped
// even if this process dies at once. So the entry is appended before any member is told.
void CoordinatorEngine::Rep::AppendRunningAndBegin() {
  {
    MutexLock lock(&mutex);
    // If a member has failed meanwhile, either the generation has ended or its job is being
    // dropped.
    if (!end.may_begin() || !end.BeginAppend("").ok()) return;
  }
  RunLogEntry entry;
  entry.mutable_running()->set_generation(envelope.generation());
  const absl::Status status = Append(entry);
  const bool known = status.ok() || EndUnlessKnown(status);
  MutexLock lock(&mutex);
  // The append hung, and the generation ended meanwhile.
  if (!end.appends()) return;
  if (status.ok()) {
    end.Begin();
  } else if (known) {
    end.EndByLoss(EndingOf(
        Ending::LOG_NOT_WRITTEN, COORDINATOR, 0,
        absl::StrCat(
            "coordinator: the beginning of training cannot be written into the run's log: ",
            status.message())));
  }
  end.FinishAppend();
}

// What this entry says is of use for the next generation alone, so a log that does not take it
// changes nothing.
void CoordinatorEngine::Rep::AppendComplete() {
  {
    MutexLock lock(&mutex);
    // A cut that has come meanwhile may have to stay the newest entry.
    if (HasCommitted() || !end.BeginAppend("").ok()) return;
  }
  RunLogEntry entry;
  entry.mutable_complete()->set_generation(envelope.generation());
  const absl::Status status = Append(entry);
  const bool known = status.ok() || EndUnlessKnown(status);
  FinishAppend();
  if (!status.ok() && known && options.warn) {
    options.warn(absl::StrCat("the run's log does not say that all members are there: ",
                              status.message()));
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
