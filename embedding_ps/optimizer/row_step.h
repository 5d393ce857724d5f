// Encodes the step numbers and step counts that a row keeps, each as one float of its state: the
// last step that changed something of the row, and how many steps the row has taken. No f32
// arithmetic is done with them, so they work beyond 2^24.
//
// The float for the last step is 0 until the row has had a step. From then on, step s is stored as
// element s mod kRowStepPeriod (the first element is 0) of this sequence: the whole numbers 1 to
// 2^24, then the floats above them, then the negative floats that are not subnormal.
//
// In hybrid mode the parts of a step arrive one by one, and a part may arrive after parts of later
// steps. The row's last step may then be later than the step of the part.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_ROW_STEP_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_ROW_STEP_H_

#include <cstdint>
#include <cstring>

namespace satrap {

// The largest number up to which f32 holds every whole number.
inline constexpr int64_t kMostExactCount = int64_t{1} << 24;
// The number of finite floats above kMostExactCount.
inline constexpr int64_t kLargerFloats = 0x7f7fffff - 0x4b800000;
inline constexpr int64_t kRowStepPeriod = kMostExactCount + kLargerFloats + (int64_t{254} << 23);
// The most steps by which an Update can be late: max_staleness, which is at most 256.
inline constexpr int64_t kMostStepsLate = 256;
// If a row's last step is ahead of the current step by at most this many steps, the part is late or
// the row comes from another run. If the last step seems to be further ahead, it belongs to the
// previous period.
inline constexpr int64_t kMostStepsAhead = kMostExactCount;

inline float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline uint32_t BitsOfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// REQUIRES: step >= 0
inline float EncodedStep(int64_t step) {
  const int64_t rank = step % kRowStepPeriod + 1;
  if (rank <= kMostExactCount) return static_cast<float>(rank);
  if (rank <= kMostExactCount + kLargerFloats) {
    return FloatOfBits(static_cast<uint32_t>(0x4b800000 + (rank - kMostExactCount)));
  }
  return FloatOfBits(
      static_cast<uint32_t>(0x80800000 + (rank - 1 - kMostExactCount - kLargerFloats)));
}

// The step, modulo kRowStepPeriod. REQUIRES: `encoded` comes from EncodedStep
inline int64_t DecodedStep(float encoded) {
  const int64_t bits = BitsOfFloat(encoded);
  if (bits <= 0x4b800000) return static_cast<int64_t>(encoded) - 1;
  if (bits <= 0x7f7fffff) return bits - 0x4b800000 + kMostExactCount - 1;
  return bits - 0x80800000 + kMostExactCount + kLargerFloats;
}

// The number of steps after the row's last one, up to and including `step`. It is step + 1 if the
// row has no last step, and 0 if its last step is `step` or later. If the last step is further
// ahead than a late part can explain, the row is assumed to come from another run with its own step
// numbers, and the result is 1. This is wrong for a row that was not stepped for more than
// kRowStepPeriod - kMostStepsAhead = 3,003,121,663 steps.
inline int64_t StepsPassed(float encoded_last_step, int64_t step) {
  if (encoded_last_step == 0) return step + 1;
  const int64_t behind =
      (step % kRowStepPeriod - DecodedStep(encoded_last_step) + kRowStepPeriod) % kRowStepPeriod;
  if (behind < kRowStepPeriod - kMostStepsAhead) return behind;
  return kRowStepPeriod - behind <= kMostStepsLate ? 0 : 1;
}

// The encoded last step of a row after a step that does not count because it was not finite. The
// result is one step later than `encoded_last_step`, so that its distance to later steps is as if
// the step had not happened.
inline float SkipStep(float encoded_last_step) {
  return EncodedStep(encoded_last_step == 0 ? 0 : DecodedStep(encoded_last_step) + 1);
}

// The number of steps that a row has taken, after one more step: `count` is the number before, and
// `step` is the number of the new step in the job. The result is count + 1 up to 2^24. Above that,
// f32 holds only every second number, then every fourth, and adding 1 would never change the count.
// There the count advances by the gap, but only in steps whose number is a multiple of the gap. So
// it grows by 1 per step on average.
inline float CountOn(float count, int64_t step) {
  if (count < static_cast<float>(kMostExactCount)) return count + 1;
  const float next = FloatOfBits(BitsOfFloat(count) + 1);
  return step % static_cast<int64_t>(next - count) == 0 ? next : count;
}

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_ROW_STEP_H_
