// Checks the first labels of the training files before a run begins (check/first_labels.h).

#ifndef SATRAP_DATA_LOADER_FIRST_LABELS_OF_FILES_H_
#define SATRAP_DATA_LOADER_FIRST_LABELS_OF_FILES_H_

#include "absl/status/status.h"
#include "data_loader/batch/stream_spec.h"

namespace satrap {

// Reads up to 1,000 records of the train stream's files, from the splits `loader`, `loader` +
// `loaders` and so on. The records are not counted as read. INVALID_ARGUMENT as FirstLabels::Check
// returns it. Always OK for the synthetic log, and for a stream that reads topics, whose first
// labels are checked when they are read (kafka/topic_batch_maker.h). Other errors are those of
// reading. Waits for the disk. REQUIRES: loader < loaders
absl::Status CheckFirstLabels(const StreamSpec& train, uint32_t loader, uint32_t loaders);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_FIRST_LABELS_OF_FILES_H_
