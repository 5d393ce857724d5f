// The topics of a run, in one generation: they are found before any loader reads and sent to all,
// partitions that are added are noticed, and the group's offsets follow the cuts.
//
// The first FixSplits of a run turns start and end of its topics into offsets and appends them to
// the log as a TOPICS entry before any loader is answered; every later generation reads the same
// ones, however far the topics have moved. If that fails, the run fails with one message, within 15
// s if no broker answers. A later generation first checks that the cluster is the same and has the
// partitions, and waits broker_wait_seconds for a broker that is away; then the run fails.
//
// Partitions that are added while a hybrid run without end trains are appended to the log, then
// dealt (dealt_topics.h), and sent with each heartbeat until the loader knows them; a sync run
// warns and leaves them out. After a cut is committed, and when a generation begins from one, the
// offsets up to which that cut has consumed everything are committed for the job's group, in the
// background, one commit at a time and the newest first. A failure only warns, and the next cut
// tries again.
//
// Questions to brokers are asked by tasks of `topic_executor`, which may outlive the engine; their
// answers are taken where the run's log is written (Host::OnDisk), because most of them end in an
// entry of it.
//
// Thread-safe, except for calls marked "On disk": those are for tasks of Host::OnDisk. It never
// calls its host while it holds its lock, so the host may call it while holding its own.

#ifndef SATRAP_DEPLOY_COORDINATOR_TOPICS_RUN_TOPICS_H_
#define SATRAP_DEPLOY_COORDINATOR_TOPICS_RUN_TOPICS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/run_log.h"
#include "common/file/file_system.h"
#include "common/thread/executor.h"
#include "common/thread/mutex.h"
#include "deploy/coordinator/topics/dealt_topics.h"
#include "deploy/coordinator/topics/topic_resolution.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

struct RunTopicsOptions {
  Executor* executor = nullptr;  // timers
  // The source that answers questions, and the executor that asks: both for a job that reads
  // topics.
  TopicSource* topics = nullptr;
  Executor* topic_executor = nullptr;
  FileSystem* file_system = nullptr;
  std::function<int64_t()> unix_ms;              // the wall clock
  std::function<void(const std::string&)> warn;  // may be null
  int64_t partitions_period_ms = 10000;          // between two looks for new partitions
  int64_t broker_pause_ms = 1000;                // before a broker that is away is asked again
};

class RunTopics {
 public:
  // What this class needs from the engine.
  class Host {
   public:
    virtual ~Host() = default;
    // Runs tasks one at a time, in order.
    virtual void OnDisk(Task task) = 0;
    // On disk: appends the entry to the run's log. After an error the generation has ended, unless
    // it is certain that the entry is not in the log.
    virtual absl::Status AppendTopics(const TopicsEntry& topics) = 0;
    // Ends the generation; the run fails, too, unless a restart may cure it (cause_table.h).
    virtual void EndForTopics(Ending how) = 0;
    // How the generation has ended; OK as long as it has not.
    virtual absl::Status EndedStatus() = 0;
  };

  // `log` is the host's; only calls on disk read it. `position` and `ledger` belong to the cut that
  // the generation begins from, whose offsets the group may not have; null: there is no cut. None
  // is owned.
  RunTopics(const JobConfig& job, const RunTopicsOptions& options, Host* host, const RunLog* log,
            const RunPosition* position, const LedgerState* ledger);

  // Sets the owner of this object. Answers that come after `owner` is gone are dropped. REQUIRES:
  // called before all others
  void SetOwner(std::weak_ptr<void> owner) { owner_ = std::move(owner); }

  // On disk. Whether all that the generation begins with is known; true for a job without topics.
  bool known() const { return known_; }
  // On disk: finds out what the generation begins with, and calls `done` on disk when that has
  // succeeded or failed. If the loader calls again meanwhile, its earlier `done` gets UNAVAILABLE.
  // REQUIRES: !known()
  void Await(uint32_t loader, std::function<void(const absl::Status&)> done);
  // On disk: topics() are what the loaders receive; first_topics() fix the order of the samples and
  // do not grow.
  const std::vector<StreamTopics>& topics() const { return topics_; }
  const std::vector<StreamTopics>& first_topics() const { return first_topics_; }

  // On disk: lets the group's offsets follow a cut that is committed.
  void FollowCut(const std::string& cut);
  // Looks for new partitions, if it is time. REQUIRES: called from time to time while training runs
  void Tick();
  // Adds the partitions from `known` on that are new in this generation.
  void AddTo(uint32_t known, HeartbeatAnswer* answer) const;
  void AddTo(StatusAnswer* answer) const;
  // Whether a question to a broker is open.
  bool asks_broker() const { return open_questions_ > 0; }

 private:
  using Done = std::function<void(const absl::Status&)>;
  template <typename Question, typename Answer>
  void Ask(Question question, void (RunTopics::*take)(const Answer& answer));
  void AskForTopics();
  void TakeTopics(const absl::StatusOr<FoundTopics>& found);
  bool WaitForBroker(const absl::Status& status);
  absl::Status BeginWith(const FoundTopics& found);
  void TakePartitions(const absl::StatusOr<StreamTopics>& added);
  void WarnOfLeftOut(const StreamTopics& added);
  absl::Status Follow(const RunPosition& position, const LedgerState& state);
  void CommitOffsets() REQUIRES(mutex_);
  void TakeCommitted(const absl::Status& status);
  // Warns, unless the last warning had the same code. An OK status resets that.
  void WarnOnce(const char* what, const absl::Status& status, absl::StatusCode* last) const;

  const JobConfig job_;
  const RunTopicsOptions options_;
  Host* const host_;
  const RunLog* const log_;
  const RunPosition* const start_position_;
  const LedgerState* const start_ledger_;
  const absl::optional<TopicInput> train_;
  std::weak_ptr<void> owner_;
  std::atomic<int> open_questions_ = 0;

  // On disk.
  bool known_;
  std::vector<StreamTopics> topics_;
  std::vector<StreamTopics> first_topics_;
  std::map<uint32_t, Done> awaiting_;    // by loader
  absl::optional<int64_t> deadline_us_;  // while the topics are asked for
  absl::StatusCode look_trouble_ = absl::StatusCode::kOk;
  absl::StatusCode commit_trouble_ = absl::StatusCode::kOk;
  std::string left_out_;  // new partitions that a sync run was warned of

  mutable Mutex mutex_;
  DealtTopics dealt_ GUARDED_BY(mutex_);
  int64_t next_look_us_ GUARDED_BY(mutex_) = 0;
  bool looks_ GUARDED_BY(mutex_) = false;
  std::vector<KafkaPlace> next_commit_ GUARDED_BY(mutex_);  // empty: none
  bool commits_ GUARDED_BY(mutex_) = false;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_TOPICS_RUN_TOPICS_H_
