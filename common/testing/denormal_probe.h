// Finds out, by computing, whether the calling thread flushes subnormal numbers to zero.

#ifndef SATRAP_COMMON_TESTING_DENORMAL_PROBE_H_
#define SATRAP_COMMON_TESTING_DENORMAL_PROBE_H_

#include <cstdint>
#include <cstring>
#include <limits>

namespace satrap {

inline uint32_t BitsOfProduct(float a, float b) {
  // Volatile, so that the compiler neither folds the product nor moves it past a change of mode.
  volatile float x = a;
  volatile float y = b;
  volatile float product = x * y;
  const float value = product;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// True if both of these products become zero: one that is subnormal itself, and one that would be
// normal but has a subnormal factor.
inline bool FlushesToZeroHere() {
  return BitsOfProduct(std::numeric_limits<float>::min(), .5f) == 0 &&
         BitsOfProduct(std::numeric_limits<float>::min() / 2, 1024.f) == 0;
}

}  // namespace satrap

#endif  // SATRAP_COMMON_TESTING_DENORMAL_PROBE_H_
