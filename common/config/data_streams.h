// Where the streams of a job come from: whether valid and test have data, and which topics or files
// a stream reads. Also the rules by which text is read, which differ between builds.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_DATA_STREAMS_H_
#define SATRAP_COMMON_CONFIG_DATA_STREAMS_H_

#include <string>

#include "absl/types/span.h"
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

// A rule by which text is read. The resolved job of a run that began with an older build does not
// set the rule's field, and the run keeps the rule that it began with. So the rule cannot be a
// default of the field.
struct TextRule {
  const char* field;  // of JobConfig
  const char* older;  // its value of before there was the field
  // Whether the rule has a meaning for the data's format, and the field is not set.
  bool (*is_open)(const DataConfig& data);
  // Sets the field as a run that begins now does.
  void (*take_newest)(DataConfig* data);
};
absl::Span<const TextRule> TextRules();

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_DATA_STREAMS_H_
