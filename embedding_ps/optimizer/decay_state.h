// The decay of optimizer state over steps with a gradient of 0.
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_DECAY_STATE_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_DECAY_STATE_H_

#include <cmath>
#include <cstdint>

#include "absl/types/span.h"

namespace satrap {

// Multiplies each element of `state` by decay^steps. The power is computed in double, so there is
// only one rounding, whatever the number of steps.
inline void DecayState(float decay, int64_t steps, absl::Span<float> state) {
  const auto factor =
      static_cast<float>(std::pow(static_cast<double>(decay), static_cast<double>(steps)));
  for (float& value : state) value *= factor;
}

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_DECAY_STATE_H_
