// The topics of a run in one generation: finds them before any loader reads, sends them to all
// loaders, notices added partitions, and commits the group's offsets after cuts.
//
// The first FixSplits of a run turns the start and end of its topics into offsets, and appends them
// to the log as a TOPICS entry before any loader is answered. Every later generation reads the same
// offsets, however far the topics have moved. If the first FixSplits fails, the run fails with one
// message, within 15 s if no broker answers. A later generation first checks that the cluster is
// the same and still has the partitions. If no broker answers a later generation, it waits for
// broker_wait_seconds; then the run fails.
//
// If partitions are added while a hybrid run without end trains, they are appended to the log, then
// distributed (dealt_topics.h), and sent with each heartbeat until the loader knows them. A sync
// run warns and leaves them out. After a cut is committed, and when a generation begins from a cut,
// the offsets up to which that cut has consumed everything are committed for the job's group. That
// happens in the background, one commit at a time; of several waiting commits only the newest is
// made. A failure is only a warning, and the next cut tries again.
//
// Questions to brokers run in tasks of `topic_executor`, which may outlive the engine. Their
// answers are processed where the run's log is written (Host::OnDisk), because most of them add an
// entry to it.
//
// Thread-safe, except for the methods that only tasks of Host::OnDisk may call, as their comments
// say. A RunTopics never calls its host while it holds its own lock, so the host may call it while
// holding the host's lock.

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
  Executor* executor = nullptr;  // for timers
  // The source that answers questions, and the executor on which they are asked. A job that reads
  // topics needs both.
  TopicSource* topics = nullptr;
  Executor* topic_executor = nullptr;
  FileSystem* file_system = nullptr;
  std::function<int64_t()> unix_ms;              // the wall clock
  std::function<void(const std::string&)> warn;  // may be null
  int64_t partitions_period_ms = 10000;          // between two checks for new partitions
  int64_t broker_pause_ms = 1000;                // before a broker that is away is asked again
};

class RunTopics {
 public:
  // The services that this class needs from the engine.
  class Host {
   public:
    virtual ~Host() = default;
    // Runs tasks one at a time, in order.
    virtual void OnDisk(Task task) = 0;
    // Called only in a task of OnDisk. Appends the entry to the run's log. After an error the
    // generation has ended, unless the entry certainly is not in the log.
    virtual absl::Status AppendTopics(const TopicsEntry& topics) = 0;
    // Ends the generation. The run fails, too, unless a restart may help (cause_table.h).
    virtual void EndForTopics(Ending how) = 0;
    // An error that says how the generation has ended; OK as long as it has not ended.
    virtual absl::Status EndedStatus() = 0;
  };

  // `log` is the host's; it is read only in tasks of Host::OnDisk. `position` and `ledger` belong
  // to the cut that the generation begins from, and are null without a cut. The group may not have
  // committed that cut's offsets yet. None of the pointers is owned.
  RunTopics(const JobConfig& job, const RunTopicsOptions& options, Host* host, const RunLog* log,
            const RunPosition* position, const LedgerState* ledger);

  // Sets the owner of this object. Answers that come after `owner` is destroyed are dropped.
  // REQUIRES: called before all other methods
  void SetOwner(std::weak_ptr<void> owner) { owner_ = std::move(owner); }

  // In a task of Host::OnDisk: returns whether all topics that the generation begins with are
  // known; true for a job without topics.
  bool known() const { return known_; }
  // In a task of Host::OnDisk: finds the topics that the generation begins with. When that has
  // succeeded or failed, calls `done`, also in such a task. If the loader calls again meanwhile,
  // its earlier `done` gets UNAVAILABLE. REQUIRES: !known()
  void Await(uint32_t loader, std::function<void(const absl::Status&)> done);
  // In a task of Host::OnDisk: topics() returns the topics that the loaders receive. first_topics()
  // returns those that determine the order of the samples, and that do not grow.
  const std::vector<StreamTopics>& topics() const { return topics_; }
  const std::vector<StreamTopics>& first_topics() const { return first_topics_; }

  // In a task of Host::OnDisk: commits the offsets of a committed cut for the group.
  void FollowCut(const std::string& cut);
  // Checks for new partitions, if that is due. REQUIRES: called regularly while training runs
  void Tick();
  // Adds those partitions, from number `known` on, that are new in this generation.
  void AddTo(uint32_t known, HeartbeatAnswer* answer) const;
  void AddTo(StatusAnswer* answer) const;
  // Whether a question to a broker has not been answered yet.
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
  // Warns about `status` unless its code is `*last`, the code in the previous call. An OK status
  // resets `*last`.
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

  // Used only in tasks of Host::OnDisk.
  bool known_;
  std::vector<StreamTopics> topics_;
  std::vector<StreamTopics> first_topics_;
  std::map<uint32_t, Done> awaiting_;    // by loader
  absl::optional<int64_t> deadline_us_;  // set while the topics are asked for
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
