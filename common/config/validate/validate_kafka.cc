#include <cstdint>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/config/data_streams.h"
#include "common/config/record_schema.h"
#include "common/config/validate/validate_job.h"
#include "common/kafka/settings.h"

namespace satrap {
namespace {

using Offsets = google::protobuf::RepeatedPtrField<KafkaOffset>;

// The topics of a stream, if it has any, and whether the job also names files for it.
struct StreamSource {
  const char* path;
  const char* files_path;
  const KafkaConfig& kafka;
  bool has_topics;
  bool has_files;
};

StreamSource SourceOf(const DataConfig& data, Stream stream) {
  const KafkaConfig* const topics = TopicsOf(data, stream);
  return {TopicsPath(stream), FilesPath(stream),
          topics == nullptr ? KafkaConfig::default_instance() : *topics, topics != nullptr,
          !FilesOf(data, stream).empty()};
}

bool NamesTopic(const KafkaConfig& kafka, const std::string& topic) {
  for (const std::string& name : kafka.topics()) {
    if (name == topic) return true;
  }
  // Only the broker knows which topics the pattern matches, so any topic may be among them.
  return !kafka.topic_pattern().empty();
}

void CheckOffsets(const KafkaConfig& kafka, const Offsets& offsets, const std::string& path,
                  Problems* problems) {
  absl::flat_hash_set<std::pair<std::string, int32_t>> seen;
  for (int i = 0; i < offsets.size(); ++i) {
    const KafkaOffset& offset = offsets.Get(i);
    const std::string at = absl::StrCat(path, ".offsets[", i, "]");
    if (!seen.emplace(offset.topic(), offset.partition()).second) {
      problems->Add(
          at, absl::StrCat("names ", offset.topic(), "/", offset.partition(), " a second time"));
    }
    if (!offset.topic().empty() && !NamesTopic(kafka, offset.topic())) {
      problems->Add(at + ".topic",
                    absl::StrCat("must be one of the stream's topics, got ", offset.topic()));
    }
  }
}

// Reports a start and an end between which no message can lie, whatever the broker holds.
void CheckNotEmpty(const KafkaConfig& kafka, const std::string& path, Problems* problems) {
  const KafkaStart& start = kafka.start();
  const KafkaEnd& end = kafka.end();
  if (start.at() == KafkaStart::LATEST && end.at() == KafkaEnd::AT_START) {
    problems->Add(
        path + ".end.at",
        "must not be AT_START with start LATEST: both are the moment when the run begins, "
        "so there would be nothing to read");
  }
  if (start.has_time() && end.has_time()) {
    const auto from = ParseKafkaTime(start.time());
    const auto to = ParseKafkaTime(end.time());
    if (from.ok() && to.ok() && *from >= *to) {
      problems->Add(path + ".end.time", absl::StrCat("must be after start.time (", start.time(),
                                                     "), got ", end.time()));
    }
  }
  for (int i = 0; i < end.offsets_size(); ++i) {
    const KafkaOffset& to = end.offsets(i);
    for (const KafkaOffset& from : start.offsets()) {
      if (from.topic() != to.topic() || from.partition() != to.partition()) continue;
      if (from.offset() <= to.offset()) continue;
      problems->Add(
          absl::StrCat(path, ".end.offsets[", i, "].offset"),
          absl::StrCat("must be at least the offset at which ", to.topic(), "/", to.partition(),
                       " starts (", from.offset(), "), got ", to.offset()));
    }
  }
}

// Checks that the job's format says what a message of this stream holds.
void CheckFormat(const DataConfig& data, const StreamSource& stream, Problems* problems) {
  const std::string path = absl::StrCat(stream.path, ".format");
  if (data.has_synthetic()) {
    problems->Add(stream.path, "is not possible with data.synthetic, which has no messages");
    return;
  }
  if (stream.kafka.format() == KafkaConfig::RECORD) {
    if (!data.has_record() && !data.has_csv()) {
      problems->Add(path, "RECORD needs data.record or data.csv, whose columns a Record holds");
    }
    return;
  }
  const std::string& name = KafkaConfig::MessageFormat_Name(stream.kafka.format());
  if (data.has_record()) {
    problems->Add(path, absl::StrCat("must be RECORD with data.record, got ", name));
  }
  if (data.has_csv() && data.csv().header()) {
    problems->Add("data.csv.header", absl::StrCat("must be false with ", path, " ", name,
                                                  ": messages have no header"));
  }
  if (data.has_csv() && data.csv().multiline()) {
    problems->Add("data.csv.multiline",
                  absl::StrCat("must be false with ", path, " ", name, ": a record is one line"));
  }
}

// The names of all columns of the format, whatever their kind.
absl::flat_hash_set<std::string> FormatColumns(const DataConfig& data) {
  const RecordSchema schema = TextSchemaOf(data);
  absl::flat_hash_set<std::string> all(schema.ids.begin(), schema.ids.end());
  all.insert(schema.id_lists.begin(), schema.id_lists.end());
  all.insert(schema.numerics.begin(), schema.numerics.end());
  for (const ColumnConfig& column : data.csv().columns()) all.insert(column.name());
  for (const ColumnConfig& column : data.record().columns()) all.insert(column.name());
  return all;
}

void CheckColumns(const DataConfig& data, const StreamSource& stream, Problems* problems) {
  absl::flat_hash_set<std::string> names = FormatColumns(data);
  for (int i = 0; i < stream.kafka.columns_size(); ++i) {
    const std::string& name = stream.kafka.columns(i).name();
    if (name.empty() || names.insert(name).second) continue;
    problems->Add(
        absl::StrCat(stream.path, ".columns[", i, "].name"),
        absl::StrCat("must differ from the names of all other columns, got '", name, "'"));
  }
}

std::string ColumnsText(const KafkaConfig& kafka) {
  std::string text;
  for (const KafkaColumn& column : kafka.columns()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", column.name(),
                    column.from() == KafkaColumn::TIMESTAMP ? " (time)" : "");
  }
  return text.empty() ? "none" : text;
}

// A feature reads its column in every stream, so evaluation must have the same columns as training.
void CheckSameColumns(const DataConfig& data, const StreamSource& stream, Problems* problems) {
  const std::string of_train = ColumnsText(data.kafka());
  const std::string of_stream = ColumnsText(stream.kafka);
  if (stream.has_files && of_train != "none") {
    problems->Add("data.kafka.columns",
                  absl::StrCat("must be empty with ", stream.files_path,
                               ": files have no such columns, got ", of_train));
  }
  if (stream.has_topics && of_train != of_stream) {
    problems->Add(absl::StrCat(stream.path, ".columns"),
                  absl::StrCat("must be those of data.kafka (", of_train, "), got ", of_stream));
  }
}

void CheckStream(const DataConfig& data, const StreamSource& stream, Problems* problems) {
  const std::string path = stream.path;
  CheckKafkaConfig(stream.kafka, path, problems);
  if (stream.has_files) {
    problems->Add(stream.files_path, absl::StrCat("must be empty with ", path,
                                                  ": a stream has either files or topics"));
  }
  CheckOffsets(stream.kafka, stream.kafka.start().offsets(), path + ".start", problems);
  CheckOffsets(stream.kafka, stream.kafka.end().offsets(), path + ".end", problems);
  CheckNotEmpty(stream.kafka, path, problems);
  CheckFormat(data, stream, problems);
  CheckColumns(data, stream, problems);
}

// Checks those settings of training that depend on whether and where the topics end.
void CheckTraining(const JobConfig& job, Problems* problems) {
  const KafkaConfig& kafka = job.data().kafka();
  const bool endless = kafka.end().at() == KafkaEnd::NEVER;
  if (endless && job.epochs() != 1) {
    problems->Add("epochs",
                  absl::StrCat("must be 1 with data.kafka.end NEVER, which has no epochs, "
                               "got ",
                               job.epochs()));
  }
  const EvaluationConfig& evaluation = job.evaluation();
  if (endless && HasValidData(job.data()) && evaluation.every_steps() == 0 &&
      evaluation.every_seconds() == 0) {
    problems->Add("evaluation.every_seconds",
                  "or evaluation.every_steps must be positive with data.kafka.end NEVER: no epoch "
                  "ends, and the validation data would never be read");
  }
  if (job.reproducible() && endless) {
    problems->Add("data.kafka.end.at",
                  "must not be NEVER with reproducible: only messages that are written already "
                  "are the same in every run");
  }
  if (job.reproducible() && kafka.max_wait_ms() != 0) {
    problems->Add("data.kafka.max_wait_ms",
                  absl::StrCat("must be 0 with reproducible, because batches would depend on when "
                               "messages arrive, got ",
                               kafka.max_wait_ms()));
  }
  if (job.mode() == JobConfig::SYNC && endless && kafka.max_wait_ms() == 0) {
    problems->Add("data.kafka.max_wait_ms",
                  "must be positive in mode SYNC with end NEVER: a quiet topic would hold up cuts "
                  "and stops, got 0");
  }
}

}  // namespace

void ValidateKafka(const JobConfig& job, Problems* problems) {
  const DataConfig& data = job.data();
  const StreamSource train = SourceOf(data, TRAIN_STREAM);
  const StreamSource valid = SourceOf(data, VALID_STREAM);
  const StreamSource test = SourceOf(data, TEST_STREAM);
  for (const StreamSource* stream : {&train, &valid, &test}) {
    if (stream->has_topics) CheckStream(data, *stream, problems);
    if (stream == &train) continue;
    CheckSameColumns(data, *stream, problems);
    if (stream->has_topics && stream->kafka.end().at() == KafkaEnd::NEVER) {
      problems->Add(absl::StrCat(stream->path, ".end.at"),
                    "must not be NEVER: an evaluation reads all of its records");
    }
  }
  const bool any_topics = train.has_topics || valid.has_topics || test.has_topics;
  if (any_topics &&
      (data.seeded_split().valid_fraction() != 0 || data.seeded_split().test_fraction() != 0)) {
    problems->Add("data.seeded_split",
                  "is not possible with topics, whose records have no place in a file: name topics "
                  "or files for each stream");
  }
  if (data.has_record()) {
    for (const StreamSource* stream : {&train, &valid, &test}) {
      if (!stream->has_files) continue;
      problems->Add(stream->files_path,
                    "must be empty with data.record, which is a format of messages only");
    }
  }
  if (data.has_kafka() && job.action() == JobConfig::TRAIN) CheckTraining(job, problems);
}

}  // namespace satrap
