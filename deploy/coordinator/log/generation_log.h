// Appends the entries of one generation's coordinator to the run's log: the topics (TOPICS), that a
// changed job has begun to train (RUNNING), that all members are there (COMPLETE), and that a
// changed job is dropped (DROPPED). Also compacts the log. Cuts are appended by cut_commits.h, and
// the end by end_entries.h.
//
// While an entry is being appended, the generation does not end (ending/generation_end.h).
//
// Only tasks of the coordinator's disk may use it; they run one at a time. It holds the state's
// mutex only briefly.

#ifndef SATRAP_DEPLOY_COORDINATOR_LOG_GENERATION_LOG_H_
#define SATRAP_DEPLOY_COORDINATOR_LOG_GENERATION_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/run_log.h"
#include "deploy/coordinator/log/cut_commits.h"
#include "deploy/coordinator/state/coordinator_state.h"
#include "proto/control.pb.h"
#include "proto/run_log.pb.h"

namespace satrap {

struct GenerationLogOptions {
  uint64_t generation = 0;
  size_t compact_after = 0;                      // entries, as in ClaimRequest
  std::function<int64_t()> unix_ms;              // the wall clock
  std::function<void(const std::string&)> warn;  // may be null
};

class GenerationLog final : public CutCommits::Host {
 public:
  // `state` is not owned. REQUIRES: the generation's entry is in `log`
  GenerationLog(CoordinatorState* state, RunLog log, GenerationLogOptions options);

  const RunLog& log() const { return log_; }

  absl::Status Append(RunLogEntry entry) override EXCLUDES(state_->mutex);
  bool IsAbsent(const absl::Status& status) const override;
  // Call after a failed Append. Ends the generation if the entry may be in the log, or if another
  // coordinator was faster. Returns whether the entry certainly is not in the log.
  bool EndUnlessKnown(const absl::Status& error) EXCLUDES(state_->mutex);

  // Errors are those of RunLog::Append, and GenerationEnd::EndedError if the generation has ended.
  absl::Status AppendTopics(const TopicsEntry& topics) EXCLUDES(state_->mutex);
  // Appends RUNNING to the log, and then begins the generation. If the log does not take the entry,
  // the generation ends.
  void AppendRunningAndBegin() EXCLUDES(state_->mutex);
  // Appends COMPLETE. If the log refuses the entry, only warns.
  void AppendComplete() EXCLUDES(state_->mutex);
  // For GenerationEnd::Host.
  void AppendDropped(const std::string& change, const Ending& how) EXCLUDES(state_->mutex);
  // Compacts the log if that is due, and removes files that the log no longer needs. Calls `begins`
  // before each removal.
  void Compact(const std::function<void()>& begins) EXCLUDES(state_->mutex);
  // Ends the generation if another coordinator has begun a later one.
  void LookForOtherCoordinators() EXCLUDES(state_->mutex);

  // Whether a cut of this generation is committed. REQUIRES: the caller holds the state's mutex
  bool HasCommitted() const;
  absl::Status EndedStatus() const EXCLUDES(state_->mutex);  // OK as long as it has not ended

 private:
  void FinishAppend() EXCLUDES(state_->mutex);
  void Warn(const char* what, const absl::Status& status) const;

  CoordinatorState* const state_;
  const GenerationLogOptions options_;
  RunLog log_;
  size_t compact_at_;  // compact when the log has this number
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_LOG_GENERATION_LOG_H_
