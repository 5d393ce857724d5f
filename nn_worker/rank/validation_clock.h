// Decides when rank 0 asks for a validation because EvaluationConfig.every_seconds have passed. The
// time is counted from the moment when the generation began to train, and again from the end of
// each validation of any kind. Validations after every_steps steps and at the ends of epochs are
// decided elsewhere; Start reports them here.
//
// Not thread-safe.

#ifndef SATRAP_NN_WORKER_RANK_VALIDATION_CLOCK_H_
#define SATRAP_NN_WORKER_RANK_VALIDATION_CLOCK_H_

#include <cstdint>

#include "nn_worker/rank/rank_options.h"

namespace satrap {

class ValidationClock {
 public:
  // No validation is ever due on ranks other than 0, or without a validation set.
  explicit ValidationClock(const RankOptions& options)
      : every_seconds_(options.rank == 0 && options.has_valid ? options.evaluation.every_seconds()
                                                              : 0) {}

  // Restarts the clock. Call when training begins or a validation has ended. `step` is the number
  // of steps counted so far.
  void Start(uint64_t step, int64_t now_us) {
    last_step_ = step;
    last_us_ = now_us;
  }

  // A run that waits for data has nothing new to validate, so a step must have been counted since
  // Start.
  bool IsDue(uint64_t step, int64_t now_us) const {
    return every_seconds_ > 0 && step > last_step_ &&
           static_cast<double>(now_us - last_us_) * 1e-6 >= every_seconds_;
  }

 private:
  const double every_seconds_;
  uint64_t last_step_ = 0;
  int64_t last_us_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_VALIDATION_CLOCK_H_
