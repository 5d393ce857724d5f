// The embedding worker of a part of an ordered stream. Loaders send the part there and NN workers
// ask for it there, and neither needs to be told.

#ifndef SATRAP_COMMON_PART_PLACEMENT_H_
#define SATRAP_COMMON_PART_PLACEMENT_H_

#include <cstdint>

#include "common/random.h"

namespace satrap {

// REQUIRES: num_workers > 0
inline int WorkerOfPart(uint32_t lane, uint64_t seq, uint32_t part, int num_workers) {
  return static_cast<int>(RandomBits(lane, seq, part) % static_cast<uint64_t>(num_workers));
}

}  // namespace satrap

#endif  // SATRAP_COMMON_PART_PLACEMENT_H_
