// Finds where the streams of a job come from: whether valid and test have data, and which topics or
// files a stream reads. Also lists the rules of reading text that differ between builds.
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

// The field of `data` with the stream's topics; null if the stream does not come from topics.
const KafkaConfig* TopicsOf(const DataConfig& data, Stream stream);
// The field of `data` with the stream's files; empty if the stream does not come from files.
const google::protobuf::RepeatedPtrField<std::string>& FilesOf(const DataConfig& data,
                                                               Stream stream);

// The field of a job that holds the topics or the files of a stream: "data.kafka" and
// "data.train_files" for the train stream.
const char* TopicsPath(Stream stream);
const char* FilesPath(Stream stream);

// A rule by which text is read. If an older build began a run, the run's resolved job does not set
// the rule's field, and the run must keep the older rule. So the newest rule cannot be the field's
// default.
struct TextRule {
  const char* field;  // of JobConfig
  const char* older;  // the rule of builds that did not have the field
  // Whether the rule applies to the data's format and the field is not set.
  bool (*is_open)(const DataConfig& data);
  // Sets the field to the rule that new runs use.
  void (*take_newest)(DataConfig* data);
};
absl::Span<const TextRule> TextRules();

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_DATA_STREAMS_H_
