// Helpers that the tests of batch makers share.

#ifndef SATRAP_DATA_LOADER_BATCH_BATCH_MAKER_TESTING_H_
#define SATRAP_DATA_LOADER_BATCH_BATCH_MAKER_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "data_loader/batch/batch_maker.h"

namespace satrap {

// Runs one epoch over splits first, first + step, ... and returns its batches.
inline std::vector<std::vector<Part>> RunEpoch(const StreamSpec& spec, BatchMaker* maker,
                                               uint32_t epoch, uint32_t first = 0,
                                               uint32_t step = 1) {
  std::vector<std::vector<Part>> batches;
  maker->BeginEpoch(epoch);
  uint32_t split = first;
  while (true) {
    std::vector<Part> parts;
    const auto made = maker->MakeBatch(&parts);
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok() || *made == BatchMaker::Result::kEnd) return batches;
    if (*made == BatchMaker::Result::kBatch) {
      batches.push_back(std::move(parts));
    } else if (split < spec.splits.size()) {
      maker->AddSplit(split);
      split += step;
    } else {
      maker->EndSplits();
    }
  }
}

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BATCH_MAKER_TESTING_H_
