// Looks at the first labels of the training data before a run begins. Labels that no loss of the
// job takes make bad records, but -1/1 and 1/5 have 1 in common with 0/1: half of such records
// would be good ones, and what they teach alone is "all positive".

#ifndef SATRAP_DATA_LOADER_FIRST_LABELS_H_
#define SATRAP_DATA_LOADER_FIRST_LABELS_H_

#include "absl/status/status.h"
#include "data_loader/batch/stream_spec.h"

namespace satrap {

// Reads up to 1,000 records from the splits `loader`, `loader` + `loaders` and so on of the files
// of the train stream, and counts nothing. INVALID_ARGUMENT if more than 1 % of the known labels of
// a column, and more than one, are none that its losses take: the message names the column, the
// values and what to do. OK for a stream of topics or of the synthetic log. Other errors are those
// of reading. Blocks on the disk. REQUIRES: loader < loaders
absl::Status CheckFirstLabels(const StreamSpec& train, uint32_t loader, uint32_t loaders);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_FIRST_LABELS_H_
