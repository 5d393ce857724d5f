// Decides which values dropout keeps. The decision is a function of (key, sample, column), where
// key = RandomBits(seed, step), and is the same on every backend. The bits of a row are
// RandomBits(key, sample) of common/numeric/random.h; the column is mixed in by one round of
// MurmurHash3's 32-bit finaliser (A. Appleby). Kernels include this header.

#ifndef SATRAP_NN_WORKER_OPERATION_DROPOUT_MASK_H_
#define SATRAP_NN_WORKER_OPERATION_DROPOUT_MASK_H_

#include <cstdint>

namespace satrap {

// Numbers that differ from one training pass to the next. The memory of a backend holds a copy of
// them, as U8 (1, sizeof(PassNumbers)). A device reads that copy, so that operations captured in a
// graph use the numbers of the current pass.
struct PassNumbers {
  uint64_t step = 0;
  int64_t first_sample = 0;  // of the part, among the samples of the step
};

// A value is dropped if its bits are below this threshold. REQUIRES: 0 <= rate < 1
inline uint32_t DropoutThreshold(float rate) {
  return static_cast<uint32_t>(static_cast<double>(rate) * 4294967296.0);
}

// `low` and `high` are the halves of the row's bits.
constexpr uint32_t DropoutBits(uint32_t low, uint32_t high, uint32_t column) {
  uint32_t x = low + column * 0x9e3779b9u;
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= (x >> 13) ^ high;
  x *= 0xc2b2ae35u;
  x ^= x >> 16;
  return x;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPERATION_DROPOUT_MASK_H_
