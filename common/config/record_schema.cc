#include "common/config/record_schema.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "google/protobuf/repeated_field.h"

namespace satrap {
namespace {

// The most columns that a format without declared columns may have. The schema needs this limit,
// because it is also made for jobs whose numbers have not been checked yet.
constexpr int kMostColumns = 65536;

int IndexOf(const std::vector<std::string>& names, absl::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? -1 : static_cast<int>(at - names.begin());
}

// PREFIX<first>, PREFIX<first + 1> and so on.
std::vector<std::string> Numbered(absl::string_view prefix, int first, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < std::min(count, kMostColumns); ++i) {
    names.push_back(absl::StrCat(prefix, first + i));
  }
  return names;
}

RecordSchema SchemaOfColumns(const google::protobuf::RepeatedPtrField<ColumnConfig>& columns) {
  RecordSchema schema;
  schema.labels.clear();
  for (const ColumnConfig& column : columns) {
    switch (column.kind()) {
      case ColumnConfig::IGNORE:
        break;
      case ColumnConfig::LABEL:
        schema.labels.push_back(column.name());
        schema.numeric_labels.push_back(column.numeric_label());
        break;
      case ColumnConfig::ID:
        schema.ids.push_back(column.name());
        break;
      case ColumnConfig::MULTI_ID:
        schema.id_lists.push_back(column.name());
        schema.weighted.push_back(!column.value_separator().empty());
        break;
      case ColumnConfig::NUMERIC:
        schema.numerics.push_back(column.name());
        break;
      case ColumnConfig::WEIGHT:
        schema.has_weight = true;
        break;
      case ColumnConfig::GROUP:
        schema.has_group = true;
        break;
      case ColumnConfig::TIME:
        schema.has_time = true;
        break;
    }
  }
  return schema;
}

// Adds the message columns of one stream's topics, unless another stream has added them already.
void AddMessageColumns(const KafkaConfig& kafka, RecordSchema* schema) {
  schema->has_time = true;
  for (const KafkaColumn& column : kafka.columns()) {
    const bool is_time = column.from() == KafkaColumn::TIMESTAMP;
    std::vector<std::string>& names = is_time ? schema->numerics : schema->ids;
    if (IndexOf(names, column.name()) >= 0) continue;
    names.push_back(column.name());
    ++(is_time ? schema->message_numerics : schema->message_ids);
  }
}

}  // namespace

int RecordSchema::IndexOfId(absl::string_view name) const { return IndexOf(ids, name); }
int RecordSchema::IndexOfIdList(absl::string_view name) const { return IndexOf(id_lists, name); }
int RecordSchema::IndexOfNumeric(absl::string_view name) const { return IndexOf(numerics, name); }

RecordSchema SchemaOf(const DataConfig& data) {
  RecordSchema schema = TextSchemaOf(data);
  if (data.has_kafka()) AddMessageColumns(data.kafka(), &schema);
  if (data.has_valid_kafka()) AddMessageColumns(data.valid_kafka(), &schema);
  if (data.has_test_kafka()) AddMessageColumns(data.test_kafka(), &schema);
  return schema;
}

RecordSchema TextSchemaOf(const DataConfig& data) {
  RecordSchema schema;
  switch (data.format_case()) {
    case DataConfig::kCriteoTsv:
      // Criteo's file has no header. These names come from the description of the data set.
      schema.is_text = true;
      schema.numerics = Numbered("I", 1, 13);
      schema.ids = Numbered("C", 1, 26);
      break;
    case DataConfig::kCsv:
      schema = SchemaOfColumns(data.csv().columns());
      schema.is_text = true;
      break;
    case DataConfig::kRecord:
      schema = SchemaOfColumns(data.record().columns());
      break;
    case DataConfig::kLibsvm:
      schema.is_text = true;
      schema.id_lists = {"features"};
      schema.weighted = {true};
      schema.numeric_labels = {data.libsvm().numeric_label()};
      schema.has_group = data.libsvm().qid();
      break;
    case DataConfig::kLibffm:
      schema.is_text = true;
      schema.id_lists = Numbered("", 0, data.libffm().num_fields());
      schema.weighted.assign(schema.id_lists.size(), true);
      schema.numeric_labels = {data.libffm().numeric_label()};
      break;
    case DataConfig::kSynthetic:
      schema.numerics = Numbered("I", 1, data.synthetic().numeric_features());
      schema.ids = Numbered("C", 1, data.synthetic().vocabulary_sizes_size());
      if (data.synthetic().record_numbers()) schema.ids.push_back("record");
      break;
    case DataConfig::FORMAT_NOT_SET:
      break;
  }
  return schema;
}

}  // namespace satrap
