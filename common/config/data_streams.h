// Whether a job has data for the valid and the test stream.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CONFIG_DATA_STREAMS_H_
#define SATRAP_COMMON_CONFIG_DATA_STREAMS_H_

#include "proto/data.pb.h"

namespace satrap {

// Whether the job names files, a share of `seeded_split` or synthetic samples for the stream. They
// may turn out to be empty.
bool HasValidData(const DataConfig& data);
bool HasTestData(const DataConfig& data);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_DATA_STREAMS_H_
