// The advice for a job that only scores, on a machine that has no graphics card.
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_COMMON_CONFIG_SCORE_ON_CPU_H_
#define SATRAP_COMMON_CONFIG_SCORE_ON_CPU_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace satrap {

// `error` says why NN workers cannot use their cards. If the job only scores, the returned error
// also says what to set so that the job scores on the CPU; any model can score there. REQUIRES:
// !error.ok()
absl::Status SuggestScoringOnCpu(const absl::Status& error, const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_SCORE_ON_CPU_H_
