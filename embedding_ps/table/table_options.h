// Which part of a table a process holds, and how it is stored.

#ifndef SATRAP_EMBEDDING_PS_TABLE_TABLE_OPTIONS_H_
#define SATRAP_EMBEDDING_PS_TABLE_TABLE_OPTIONS_H_

#include <cstdint>

#include "common/numeric/hash.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"

namespace satrap {

struct TableOptions {
  uint64_t seed = 1;         // seed of the initial values
  int shards = 16;           // in the range of EmbeddingPsConfig.shards
  int64_t reserve_rows = 0;  // expected in this process; memory is committed on touch
  // The range of partitions whose keys the table may hold; both ends are inclusive.
  int first_partition = 0;
  int last_partition = kNumPartitions - 1;
  // first_step: how many steps the run had taken when this process started. frozen_steps: in how
  // many of these the table was frozen. Rows do not count a step as missed if the table was frozen
  // in it.
  int64_t first_step = 0;
  int64_t frozen_steps = 0;
  SparseOptimizerFactory new_optimizer = NewSparseOptimizer;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_TABLE_OPTIONS_H_
