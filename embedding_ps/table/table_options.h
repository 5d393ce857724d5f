// The part of a table that a process holds, and how.

#ifndef SATRAP_EMBEDDING_PS_TABLE_TABLE_OPTIONS_H_
#define SATRAP_EMBEDDING_PS_TABLE_TABLE_OPTIONS_H_

#include <cstdint>

#include "common/numeric/hash.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"

namespace satrap {

struct TableOptions {
  uint64_t seed = 1;         // of initial values
  int shards = 16;           // 1 to kMaxShards (common/config/ranges.h)
  int64_t reserve_rows = 0;  // expected in this process; memory is committed on touch
  // The partitions of the keys that it may hold, both inclusive.
  int first_partition = 0;
  int last_partition = kNumPartitions - 1;
  // Steps that the run had made when this process started, and how many of them the table was
  // frozen in. A step in which the table is frozen is not a missed step.
  int64_t first_step = 0;
  int64_t frozen_steps = 0;
  SparseOptimizerFactory new_optimizer = NewSparseOptimizer;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_TABLE_OPTIONS_H_
