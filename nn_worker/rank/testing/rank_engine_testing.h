// Code that the tests of RankEngine share.

#ifndef SATRAP_NN_WORKER_RANK_TESTING_RANK_ENGINE_TESTING_H_
#define SATRAP_NN_WORKER_RANK_TESTING_RANK_ENGINE_TESTING_H_

#include <cstdint>
#include <vector>

#include "common/numeric/random.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/testing/fake_cluster.h"

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

// A job of a few small epochs with its parts. A seed determines everything that can vary.
class DrawnJob {
 public:
  DrawnJob(uint64_t seed, bool ordered)
      : random_(seed), ordered_(ordered), num_ranks_(1 + static_cast<int>(random_.Below(3))) {
    const int lanes = 1 + static_cast<int>(random_.Below(3));
    options = ordered ? Sync(num_ranks_, lanes)
                      : Hybrid(num_ranks_, 1 + static_cast<int>(random_.Below(3)));
    options.staleness_warmup_steps = random_.Below(6);
    options.epochs = 1 + static_cast<uint32_t>(random_.Below(3));
    options.evaluation.set_every_steps(static_cast<int64_t>(random_.Below(4)));
    options.evaluation.set_at_epoch_end(random_.Below(2) == 1);
    if (random_.Below(4) == 0) options.evaluation.set_every_seconds(.05);
    network.seed = seed;
    num_workers = 1 + static_cast<int>(random_.Below(3));
  }

  uint64_t Below(uint64_t limit) { return random_.Below(limit); }

  // Queues the training parts, 5 test parts, and more validation passes than the job makes. Returns
  // the number of training parts, of one sample each.
  size_t PutParts(FakeCluster* cluster) {
    size_t parts = 0;
    for (uint32_t epoch = 0; epoch < options.epochs; ++epoch) parts += PutEpoch(cluster, epoch);
    for (int pass = 0; pass < 60; ++pass) {
      cluster->PutEpoch(VALID_STREAM, pass, static_cast<int>(random_.Below(4)));
    }
    cluster->PutEpoch(TEST_STREAM, 0, 5);
    return parts;
  }

  RankOptions options;
  FakeNetwork network;
  int num_workers;

 private:
  size_t PutEpoch(FakeCluster* cluster, uint32_t epoch) {
    if (!ordered_) {
      const int count = static_cast<int>(random_.Below(12));
      cluster->PutEpoch(TRAIN_STREAM, epoch, count);
      return count;
    }
    size_t parts = 0;
    std::vector<int> batches;
    for (int lane = 0; lane < options.lanes; ++lane) {
      batches.push_back(1 + static_cast<int>(random_.Below(4)));
      parts += static_cast<size_t>(batches.back() * num_ranks_);
    }
    cluster->PutOrderedEpoch(epoch, batches);
    return parts;
  }

  SplitMix64 random_;
  const bool ordered_;
  const int num_ranks_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_RANK_ENGINE_TESTING_H_
