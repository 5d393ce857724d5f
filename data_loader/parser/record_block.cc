#include "data_loader/parser/record_block.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace satrap {
namespace {

int IndexOf(const std::vector<std::string>& names, absl::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? -1 : static_cast<int>(at - names.begin());
}

// PREFIX<first>, PREFIX<first + 1> and so on.
std::vector<std::string> Numbered(absl::string_view prefix, int first, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(absl::StrCat(prefix, first + i));
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
      schema.numerics = Numbered("I", 1, 13);
      schema.ids = Numbered("C", 1, 26);
      break;
    case DataConfig::kCsv:
      return SchemaOfColumns(data.csv().columns());
    case DataConfig::kRecord:
      return SchemaOfColumns(data.record().columns());
    case DataConfig::kLibsvm:
      schema.id_lists = {"features"};
      schema.weighted = {true};
      schema.numeric_labels = {data.libsvm().numeric_label()};
      schema.has_group = data.libsvm().qid();
      break;
    case DataConfig::kLibffm:
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
      CHECK(false) << "no data format";
  }
  return schema;
}

RecordBlock::RecordBlock(const RecordSchema& schema)
    : num_ids_(schema.ids.size()),
      num_numerics_(schema.numerics.size()),
      num_labels_(schema.labels.size()),
      mask_words_((schema.ids.size() + 63) / 64),
      has_message_columns_(schema.message_ids + schema.message_numerics > 0),
      lists_(schema.id_lists.size()),
      message_ids_(schema.message_ids),
      message_numerics_(schema.message_numerics, kMissingNumeric) {
  for (size_t i = 0; i < lists_.size(); ++i) lists_[i].weighted = schema.weighted[i];
}

// Keeps the memory, because the next block of a split needs about as much.
void RecordBlock::Clear() {
  rows_ = 0;
  for (List& list : lists_) list.ends.clear();
  TruncateLists();
}

void RecordBlock::Grow() {
  capacity_ = capacity_ == 0 ? 1024 : capacity_ * 2;
  ids_.resize(capacity_ * num_ids_);
  missing_.resize(capacity_ * mask_words_);
  numerics_.resize(capacity_ * num_numerics_);
  labels_.resize(capacity_ * num_labels_);
  weights_.resize(capacity_);
  groups_.resize(capacity_);
  times_.resize(capacity_);
}

void RecordBlock::FillMessageColumns() {
  const size_t first_id = num_ids_ - message_ids_.size();
  for (size_t i = 0; i < message_ids_.size(); ++i) {
    if (message_ids_[i].has_value()) {
      row_ids()[first_id + i] = *message_ids_[i];
    } else {
      SetMissing(first_id + i);
    }
  }
  std::copy(message_numerics_.begin(), message_numerics_.end(),
            row_numerics() + (num_numerics_ - message_numerics_.size()));
}

// Only lists need cleaning: BeginRow resets the other values that have a default, and parsers write
// all others.
void RecordBlock::AbandonRow() { TruncateLists(); }

void RecordBlock::DropLastRow() {
  CHECK(rows_ > 0);
  --rows_;
  for (List& list : lists_) list.ends.pop_back();
  TruncateLists();
}

// Removes what was appended to the lists since the last committed row.
void RecordBlock::TruncateLists() {
  for (List& list : lists_) {
    const size_t size = list.ends.empty() ? 0 : list.ends.back();
    list.ids.resize(size);
    if (list.weighted) list.values.resize(size);
  }
}

absl::Span<const uint64_t> RecordBlock::list_ids(size_t row, size_t column) const {
  const List& list = lists_[column];
  const size_t from = row == 0 ? 0 : list.ends[row - 1];
  return absl::MakeConstSpan(list.ids).subspan(from, list.ends[row] - from);
}

absl::Span<const float> RecordBlock::list_values(size_t row, size_t column) const {
  const List& list = lists_[column];
  if (!list.weighted) return {};
  const size_t from = row == 0 ? 0 : list.ends[row - 1];
  return absl::MakeConstSpan(list.values).subspan(from, list.ends[row] - from);
}

}  // namespace satrap
