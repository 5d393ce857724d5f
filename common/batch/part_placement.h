// Which embedding worker holds a part of an ordered stream. Loaders, NN workers and embedding
// workers each compute this themselves, so no message has to say where a part is. The rule is part
// of the formats (docs/formats.md).

#ifndef SATRAP_COMMON_BATCH_PART_PLACEMENT_H_
#define SATRAP_COMMON_BATCH_PART_PLACEMENT_H_

#include <cstdint>

#include "common/numeric/random.h"

namespace satrap {

// The parts of one batch, which are trained in the same step, go to consecutive workers: each gets
// an equal number, give or take one. A hash of the batch chooses the first worker, so that batches
// with fewer parts than there are workers do not always begin at the same worker.
//
// REQUIRES: num_workers > 0
inline int WorkerOfPart(uint32_t lane, uint64_t seq, uint32_t part, int num_workers) {
  const uint64_t workers = static_cast<uint64_t>(num_workers);
  return static_cast<int>((RandomBits(lane, seq) % workers + part) % workers);
}

}  // namespace satrap

#endif  // SATRAP_COMMON_BATCH_PART_PLACEMENT_H_
