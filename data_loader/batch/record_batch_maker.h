// The BatchMaker that reads records from files or makes them from the synthetic click log. It
// shuffles within each block if the spec says so.

#ifndef SATRAP_DATA_LOADER_BATCH_RECORD_BATCH_MAKER_H_
#define SATRAP_DATA_LOADER_BATCH_RECORD_BATCH_MAKER_H_

#include <memory>

#include "data_loader/batch/batch_maker.h"

namespace satrap {

std::unique_ptr<BatchMaker> NewRecordBatchMaker(std::shared_ptr<const StreamSpec> spec);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_RECORD_BATCH_MAKER_H_
