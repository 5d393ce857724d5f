// The learning-rate schedule of tables and of the dense network (proto/schedule.proto).
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_COMMON_LEARNING_RATE_LEARNING_RATE_SCHEDULE_H_
#define SATRAP_COMMON_LEARNING_RATE_LEARNING_RATE_SCHEDULE_H_

#include <cstdint>

#include "proto/schedule.pb.h"

namespace satrap {

// The factor by which the base rate is multiplied in `step` of the job, counted from 0; in [0, 1].
// Takes about 100 ns, so call it once for each update, not for each row. REQUIRES: step >= 0,
// values in range (CheckRanges)
double LearningRateFactor(const LearningRateSchedule& schedule, int64_t step);

}  // namespace satrap

#endif  // SATRAP_COMMON_LEARNING_RATE_LEARNING_RATE_SCHEDULE_H_
