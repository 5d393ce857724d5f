// Code that the tests of RankEngine share.

#ifndef SATRAP_NN_WORKER_RANK_TESTING_RANK_ENGINE_TESTING_H_
#define SATRAP_NN_WORKER_RANK_TESTING_RANK_ENGINE_TESTING_H_

#include <cstdint>
#include <vector>

#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/testing/fake_part.h"

namespace satrap {

// Options of ranks in hybrid mode, with validation and test sets, but without evaluations or cuts
// unless a test asks for them.
inline RankOptions Hybrid(int num_ranks, int max_staleness = 2) {
  RankOptions options;
  options.num_ranks = num_ranks;
  options.max_staleness = max_staleness;
  options.has_valid = true;
  options.has_test = true;
  options.evaluation.set_at_epoch_end(false);
  options.checkpoint.set_every_seconds(0);
  return options;
}

// Like Hybrid, but in sync mode.
inline RankOptions Sync(int num_ranks, int lanes) {
  RankOptions options = Hybrid(num_ranks, 1);
  options.ordered = true;
  options.lanes = lanes;
  return options;
}

// Part 0.0.SEQ.0.
inline FakePart TrainPart(uint64_t seq, uint32_t samples, double weight) {
  FakePart part;
  part.id.set_seq(seq);
  part.samples = samples;
  part.weight = weight;
  return part;
}

// 0, 1, ... n - 1
inline std::vector<uint64_t> Numbers(size_t n) {
  std::vector<uint64_t> numbers(n);
  for (size_t i = 0; i < n; ++i) numbers[i] = i;
  return numbers;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_RANK_ENGINE_TESTING_H_
