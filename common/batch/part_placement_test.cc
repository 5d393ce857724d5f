#include "common/batch/part_placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace satrap {
namespace {

std::vector<int> PartsOfEachWorker(uint32_t lane, uint64_t seq, uint32_t parts, int workers) {
  std::vector<int> load(workers);
  for (uint32_t part = 0; part < parts; ++part) ++load[WorkerOfPart(lane, seq, part, workers)];
  return load;
}

TEST(PartPlacementTest, ThePartsOfABatchAreSpreadEvenlyAtEveryStep) {
  for (const auto& [parts, workers] : std::vector<std::pair<int, int>>{
           {4, 4}, {64, 64}, {64, 4}, {3, 2}, {2, 5}, {7, 3}, {1, 1}}) {
    for (uint32_t lane = 0; lane < 3; ++lane) {
      for (uint64_t seq = 0; seq < 200; ++seq) {
        const std::vector<int> load = PartsOfEachWorker(lane, seq, parts, workers);
        EXPECT_EQ(*std::max_element(load.begin(), load.end()), (parts + workers - 1) / workers)
            << parts << " parts on " << workers << " workers";
        EXPECT_EQ(*std::min_element(load.begin(), load.end()), parts / workers);
      }
    }
  }
}

// If there are fewer parts than workers, a fixed first worker would leave the last workers idle for
// the whole run.
TEST(PartPlacementTest, OverManyStepsEveryWorkerGetsItsShare) {
  constexpr int kWorkers = 8;
  constexpr int kPartsEach = 1000;
  std::vector<int> load(kWorkers);
  for (uint64_t seq = 0; seq < kWorkers * kPartsEach; ++seq)
    ++load[WorkerOfPart(1, seq, 0, kWorkers)];
  for (const int parts : load) EXPECT_NEAR(parts, kPartsEach, 150);
}

// Loaders, NN workers and embedding workers each compute the placement themselves. So it is part of
// the formats and must not change.
TEST(PartPlacementTest, GivesTheRecordedWorkers) {
  std::vector<int> workers;
  for (uint64_t seq = 0; seq < 8; ++seq) workers.push_back(WorkerOfPart(2, seq, 3, 5));
  EXPECT_EQ(workers, (std::vector<int>{2, 1, 2, 2, 4, 3, 4, 3}));
}

}  // namespace
}  // namespace satrap
