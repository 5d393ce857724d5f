// A BatchMaker for benchmarks. It encodes the first `cycle_batches` batches of the synthetic click
// log once, and then sends them again and again, so that the loader costs almost nothing.

#ifndef SATRAP_DATA_LOADER_BATCH_CYCLING_BATCH_MAKER_H_
#define SATRAP_DATA_LOADER_BATCH_CYCLING_BATCH_MAKER_H_

#include <memory>

#include "data_loader/batch/batch_maker.h"

namespace satrap {

// REQUIRES: the spec has a click_log, and cycle_batches > 0
std::unique_ptr<BatchMaker> NewCyclingBatchMaker(std::shared_ptr<const StreamSpec> spec);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_CYCLING_BATCH_MAKER_H_
