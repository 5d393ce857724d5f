// Which streams a job has data for, beside the train stream.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CONFIG_DATA_STREAMS_H_
#define SATRAP_COMMON_CONFIG_DATA_STREAMS_H_

#include "proto/data.pb.h"

namespace satrap {

// Whether files, a share of `seeded_split` or synthetic samples are named for the stream. They may
// turn out to be empty.
bool HasValidData(const DataConfig& data);
bool HasTestData(const DataConfig& data);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_DATA_STREAMS_H_
