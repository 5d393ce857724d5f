// Looks at the first labels of the training data before a run begins. Labels that no loss of the
// job takes make bad records. But labels of -1 and 1, or of 1 and 5, share the 1 with 0 and 1: half
// of such records would be good, and would teach nothing but "all positive".

#ifndef SATRAP_DATA_LOADER_FIRST_LABELS_H_
#define SATRAP_DATA_LOADER_FIRST_LABELS_H_

#include "absl/status/status.h"
#include "data_loader/batch/stream_spec.h"

namespace satrap {

// Reads up to 1,000 records from the splits `loader`, `loader` + `loaders` and so on of the train
// stream's files, and counts nothing. INVALID_ARGUMENT if the losses of a column do not take more
// than 1 % of its known labels, and more than one label: the message names the column, the values
// and what to do. OK for a stream of topics or of the synthetic log. Otherwise fails as reading
// does. Waits for the disk. REQUIRES: loader < loaders
absl::Status CheckFirstLabels(const StreamSpec& train, uint32_t loader, uint32_t loaders);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_FIRST_LABELS_H_
