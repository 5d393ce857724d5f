// Decides whether training continues from a cut, and what the generation that begins there compares
// its validations with. The cut says whether training was over according to the job of that time;
// since then `resume --set` and `scale` may have changed epochs, max_steps, patience, or the
// metric.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_COORDINATOR_CLAIM_START_POSITION_H_
#define SATRAP_DEPLOY_COORDINATOR_CLAIM_START_POSITION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// The reason why training is over at `position` according to `job`, such as "epoch 3 of 3 is
// trained"; empty if it is not over.
std::string WhyTrainingIsOver(const JobConfig& job, const RunPosition& position);

// `position` is that of a cut. If training was over there according to `job_of_cut`, but is not
// according to `job`, sets `position` to RESUME. Training that ended for a reason outside its job
// stays over.
void ContinueTraining(const JobConfig& job_of_cut, const JobConfig& job, RunPosition* position);

// If `job` judges validations by another metric or task than `job_of_cut`, their values cannot be
// compared. So if training continues, the best validation and the counts of patience and plateau
// are removed from `position`, but the learning rates that reductions have set are kept. Training
// that was over continues under the same conditions as in ContinueTraining, but whether it is over
// according to `job` is decided without the values that are removed. If it stays over, `position`
// is not changed, because nothing will be compared with its best validation. If metric and task are
// the same, only calls ContinueTraining. Returns a text for the log that says what was changed;
// empty if nothing was.
std::string BeginFrom(const JobConfig& job_of_cut, const JobConfig& job, RunPosition* position);

// Checks whether a run may be resumed with `job` instead of `before`, from `ledger` and from
// `position` as ContinueTraining has set it. INVALID_ARGUMENT if `job` changes when training ends
// and one of these holds: an epoch beyond the new end has begun, training is already past the new
// end, or training is still over.
absl::Status CheckTrainingEnd(const JobConfig& before, const JobConfig& job,
                              const RunPosition& position, const LedgerState& ledger);

// Checks whether a run in training may change its size with `job` instead of `before`, at step
// `step` of epoch `epoch` (counted from 0). INVALID_ARGUMENT if that would end training.
absl::Status CheckScaleKeepsTraining(const JobConfig& before, const JobConfig& job, uint32_t epoch,
                                     uint64_t step);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_CLAIM_START_POSITION_H_
