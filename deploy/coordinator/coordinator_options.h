// The options of a coordinator's engine (coordinator_engine.h).

#ifndef SATRAP_DEPLOY_COORDINATOR_COORDINATOR_OPTIONS_H_
#define SATRAP_DEPLOY_COORDINATOR_COORDINATOR_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "common/file/file_system.h"
#include "common/role/kill_points.h"
#include "common/thread/executor.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "deploy/coordinator/topics/topic_source.h"

namespace satrap {

struct CoordinatorTimeouts {
  int64_t heartbeat_timeout_ms = 8000;  // a member silent for longer is lost
  // If not all members are heard from within this time, the generation ends. In pods the run ends,
  // and the time is counted across generations (members/attendance.h). If a place becomes free
  // before training begins, the time begins anew. There is no time limit for becoming ready: a
  // member that loads for a long time shows by its heartbeats that it lives.
  int64_t start_timeout_ms = 600000;
  // How often the engine checks whether another coordinator has begun a later generation.
  int64_t log_period_ms = 3000;
  // How often the engine checks whether the topics of a run without end have new partitions.
  int64_t partitions_period_ms = 10000;
  // If a broker did not answer, how long to wait before asking it again.
  int64_t broker_pause_ms = 1000;
  // If the log refuses the run's end: how often the engine tries again, and for how long if a
  // launcher waits.
  int64_t end_period_ms = 1000;
  int64_t end_limit_ms = 10000;
  // How long a generation that ends because a process leaves its machine waits until the log has
  // the entry LEFT. Not used if the entry of a cut records the move.
  int64_t left_limit_ms = 2000;
};

struct CoordinatorOptions {
  Executor* executor = nullptr;  // for timers and answers; never blocked
  // For file work, which blocks. May be `executor` itself if it does no harm to block that one.
  Executor* disk_executor = nullptr;
  FileSystem* file_system = nullptr;
  // For a job that reads topics: the source that answers questions about topics, and the executor
  // that runs these questions, one at a time. Only loaders that ask for their partitions wait for
  // this executor.
  TopicSource* topics = nullptr;
  Executor* topic_executor = nullptr;
  uint64_t writer = 0;                   // random id of this process; part of its drafts' names
  size_t compact_after = kCompactAfter;  // as in ClaimRequest
  bool in_pods = false;                  // else a launcher starts all processes of a generation
  std::string build;                     // that of this process (RegisterRequest); empty: not known
  KillPoints* kill_points = nullptr;     // null: none
  // The wall clock, for the entries of the log.
  std::function<int64_t()> unix_ms;
  // Receives messages about failures that do not affect the run: a cut that cannot be removed, a
  // group's offsets that cannot be committed.
  std::function<void(const std::string&)> warn;
  CoordinatorTimeouts timeouts;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_COORDINATOR_OPTIONS_H_
