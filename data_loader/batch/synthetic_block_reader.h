// The BlockReader of the synthetic click log: it generates the rows of a split.

#ifndef SATRAP_DATA_LOADER_BATCH_SYNTHETIC_BLOCK_READER_H_
#define SATRAP_DATA_LOADER_BATCH_SYNTHETIC_BLOCK_READER_H_

#include <cstdint>
#include <memory>

#include "data_loader/batch/block_reader.h"
#include "data_loader/batch/read_progress.h"
#include "data_loader/source/split_list.h"
#include "data_loader/synthetic/click_log.h"

namespace satrap {

// Does not generate the rows of blocks that are completely consumed. `log`, `progress` and the
// ledger of `consumed` must outlive the reader.
std::unique_ptr<BlockReader> NewSyntheticBlockReader(const Split& split, Stream stream,
                                                     uint64_t block_rows, const ClickLog* log,
                                                     ReadProgress* progress,
                                                     const SplitConsumption& consumed = {});

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_SYNTHETIC_BLOCK_READER_H_
