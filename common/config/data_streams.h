// Where the streams of a job come from: whether there is data for valid and test, and which topics.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CONFIG_DATA_STREAMS_H_
#define SATRAP_COMMON_CONFIG_DATA_STREAMS_H_

#include <string>

#include "google/protobuf/repeated_field.h"
#include "proto/data.pb.h"
#include "proto/hot.pb.h"

namespace satrap {

// Whether the job names files, topics, a share of `seeded_split` or synthetic samples for the
// stream. They may turn out to be empty.
bool HasValidData(const DataConfig& data);
bool HasTestData(const DataConfig& data);

// The topics of a stream, in `data`; null if the stream does not come from topics.
const KafkaConfig* TopicsOf(const DataConfig& data, Stream stream);
// The files of a stream, in `data`; empty if the stream does not come from files.
const google::protobuf::RepeatedPtrField<std::string>& FilesOf(const DataConfig& data,
                                                               Stream stream);

// The field of a job that holds the topics or the files of a stream: "data.kafka" and
// "data.train_files" for the train stream.
const char* TopicsPath(Stream stream);
const char* FilesPath(Stream stream);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_DATA_STREAMS_H_
