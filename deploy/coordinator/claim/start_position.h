// Whether training continues from a cut according to the job of the generation that begins there,
// and what that generation compares its validations with. The cut says whether training was over
// according to the job at the time; since then `resume --set` and `scale` may have changed epochs,
// max_steps, patience, or the metric.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_COORDINATOR_CLAIM_START_POSITION_H_
#define SATRAP_DEPLOY_COORDINATOR_CLAIM_START_POSITION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// Why `job` asks for no more training at `position`, such as "epoch 3 of 3 is trained"; empty if it
// asks for more.
std::string WhyTrainingIsOver(const JobConfig& job, const RunPosition& position);

// If training was over according to `job_of_cut` but `job` asks for more, sets `position`, the
// cut's, to RESUME. Training that ended for another reason than its job stays over.
void ContinueTraining(const JobConfig& job_of_cut, const JobConfig& job, RunPosition* position);

// If `job` judges validations by another metric or task than `job_of_cut`, their values cannot be
// compared: removes from `position` the best validation and the counts of patience and plateau, but
// leaves the rates where reductions have put them. Then calls ContinueTraining. Returns what has
// happened, for the log; empty if nothing. A training that stays over keeps its best, because
// nothing will be compared with it.
std::string BeginFrom(const JobConfig& job_of_cut, const JobConfig& job, RunPosition* position);

// Whether a run may be resumed with `job` instead of `before` from `position`, after
// ContinueTraining, and `ledger`. INVALID_ARGUMENT if `job` changes when training ends, but an
// epoch that it leaves out has begun, training is already past the new end, or training is over all
// the same.
absl::Status CheckTrainingEnd(const JobConfig& before, const JobConfig& job,
                              const RunPosition& position, const LedgerState& ledger);

// Whether a run in training may change its size with `job` instead of `before` in epoch `epoch`,
// from 0, at step `step`. INVALID_ARGUMENT if that would end training.
absl::Status CheckScaleKeepsTraining(const JobConfig& before, const JobConfig& job, uint32_t epoch,
                                     uint64_t step);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_CLAIM_START_POSITION_H_
