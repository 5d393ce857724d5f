// Random numbers that are functions of their counters. They have no state, so they are the same on
// every machine, in any order and on any number of threads.

#ifndef SATRAP_COMMON_NUMERIC_RANDOM_H_
#define SATRAP_COMMON_NUMERIC_RANDOM_H_

#include <cmath>
#include <cstdint>

#include "common/numeric/hash.h"

namespace satrap {

// 64 random bits for the counters (a, b, c). Chains SplitMix64's finaliser, so that neighbouring
// counters give unrelated bits.
inline uint64_t RandomBits(uint64_t a, uint64_t b, uint64_t c = 0) {
  return Mix64(Mix64(Mix64(a + 0x9e3779b97f4a7c15ULL) ^ b) + 0x9e3779b97f4a7c15ULL * (c + 1));
}

// Uniform in [0, 1), from the top 24 bits (float) or 53 bits (double).
inline float UniformFloat(uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-24f; }
inline double UniformDouble(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Standard normal, by the Box-Muller transform of two halves of the random bits of (a, b, c).
inline double NormalDouble(uint64_t a, uint64_t b, uint64_t c = 0) {
  const double u = 1.0 - UniformDouble(RandomBits(a, b, 2 * c));
  const double v = UniformDouble(RandomBits(a, b, 2 * c + 1));
  return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
}

// A sequence of random numbers, for one thread that draws them in one order (generators, tests,
// shuffles).
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t Next() { return Mix64(state_ += 0x9e3779b97f4a7c15ULL); }
  // Uniform in [0, bound), by Lemire's multiplication; the bias is under bound / 2^64. REQUIRES:
  // bound > 0
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }
  double NextDouble() { return UniformDouble(Next()); }

 private:
  uint64_t state_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_NUMERIC_RANDOM_H_
