#include "common/config/data_streams.h"

#include "common/config/record_schema.h"

namespace satrap {
namespace {

constexpr int kNewestRecordRules = 2;

constexpr TextRule kTextRules[] = {
    {"data.csv.trim_lists", "false",
     [](const DataConfig& data) { return data.csv().trim() && !data.csv().has_trim_lists(); },
     [](DataConfig* data) { data->mutable_csv()->set_trim_lists(true); }},
    {"data.record_rules", "0",
     [](const DataConfig& data) { return TextSchemaOf(data).is_text && !data.has_record_rules(); },
     [](DataConfig* data) { data->set_record_rules(kNewestRecordRules); }},
};

}  // namespace

absl::Span<const TextRule> TextRules() { return kTextRules; }

bool HasValidData(const DataConfig& data) {
  return data.valid_files_size() > 0 || data.has_valid_kafka() ||
         data.seeded_split().valid_fraction() > 0 ||
         (data.has_synthetic() && data.synthetic().valid_samples() > 0);
}

bool HasTestData(const DataConfig& data) {
  return data.test_files_size() > 0 || data.has_test_kafka() ||
         data.seeded_split().test_fraction() > 0 ||
         (data.has_synthetic() && data.synthetic().test_samples() > 0);
}

const KafkaConfig* TopicsOf(const DataConfig& data, Stream stream) {
  switch (stream) {
    case TRAIN_STREAM:
      return data.has_kafka() ? &data.kafka() : nullptr;
    case VALID_STREAM:
      return data.has_valid_kafka() ? &data.valid_kafka() : nullptr;
    case TEST_STREAM:
      return data.has_test_kafka() ? &data.test_kafka() : nullptr;
  }
  return nullptr;
}

const google::protobuf::RepeatedPtrField<std::string>& FilesOf(const DataConfig& data,
                                                               Stream stream) {
  if (stream == VALID_STREAM) return data.valid_files();
  return stream == TEST_STREAM ? data.test_files() : data.train_files();
}

const char* TopicsPath(Stream stream) {
  if (stream == VALID_STREAM) return "data.valid_kafka";
  return stream == TEST_STREAM ? "data.test_kafka" : "data.kafka";
}

const char* FilesPath(Stream stream) {
  if (stream == VALID_STREAM) return "data.valid_files";
  return stream == TEST_STREAM ? "data.test_files" : "data.train_files";
}

}  // namespace satrap
