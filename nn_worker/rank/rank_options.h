// The settings of a RankEngine, taken from its job.

#ifndef SATRAP_NN_WORKER_RANK_RANK_OPTIONS_H_
#define SATRAP_NN_WORKER_RANK_RANK_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "common/rpc/timeouts.h"
#include "nn_worker/rank/run_record.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

struct RankOptions {
  int rank = 0;
  int num_ranks = 1;
  Envelope envelope;  // of every call
  rpc::RpcTimeouts timeouts;

  bool train = true;     // false: one test pass and nothing else
  bool ordered = false;  // JobConfig.mode is SYNC
  int max_staleness = 1;
  uint64_t staleness_warmup_steps = 0;      // counted steps with one permit
  uint64_t max_skipped_steps_in_a_row = 0;  // 0: no limit
  int lanes = 1;                            // in ordered mode
  uint32_t epochs = 1;
  uint64_t max_steps = 0;  // 0: no limit
  int64_t idle_step_ms = 50;
  EvaluationConfig evaluation;
  bool has_valid = false;  // the job has a validation set
  bool has_test = false;

  RunRecord::Traits traits;             // of the run
  std::vector<uint32_t> frozen_tables;  // ids
  RunPosition position;                 // training goes on from here
  CheckpointConfig checkpoint;          // when cuts are due
};

// `position` is the position of the cut from which the generation begins; it is empty if the
// generation begins from nothing. REQUIRES: `job` is validated
// (common/config/validate/validate_job.h)
RankOptions MakeRankOptions(const JobConfig& job, int rank, const Envelope& envelope,
                            const RunPosition& position = RunPosition());

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_RANK_OPTIONS_H_
