// The number of the last step that changed something of a row, kept as one float of its state.
//
// A row's float is 0 until the first such step, then 1 + (step mod 2^24), a whole number that f32
// holds exactly. In hybrid the parts of a step arrive one by one, and a late one after parts of
// later steps: for the row its step has passed already.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_ROW_STEP_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_ROW_STEP_H_

#include <cstdint>

namespace satrap {

inline constexpr int64_t kRowStepPeriod = int64_t{1} << 24;
// A part is trained at most max_staleness steps before its Update arrives, and that is at most 256.
inline constexpr int64_t kMostStepsLate = 256;

inline float EncodedStep(int64_t step) { return static_cast<float>(step % kRowStepPeriod + 1); }

// Steps after the last one of the row, up to and including `step`; step + 1 if there was none. 0 if
// `step` or a later one is the row's last already. A row that is further ahead than a part may be
// late is of another run, whose steps were counted anew: 1. So is, wrongly, one that was left alone
// for more than 2^23 steps.
inline int64_t StepsPassed(float encoded_last_step, int64_t step) {
  if (encoded_last_step == 0) return step + 1;
  const int64_t last = static_cast<int64_t>(encoded_last_step) - 1;
  const int64_t ahead = (step - last + kRowStepPeriod) % kRowStepPeriod;
  if (ahead < kRowStepPeriod / 2) return ahead;
  return kRowStepPeriod - ahead <= kMostStepsLate ? 0 : 1;
}

// The number of a row for which a step passed that was none, because it was not finite: later steps
// are as far behind as if it had not been counted.
inline float SkipStep(float encoded_last_step) {
  return encoded_last_step == static_cast<float>(kRowStepPeriod) ? 1 : encoded_last_step + 1;
}

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_ROW_STEP_H_
