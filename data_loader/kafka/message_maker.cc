#include "data_loader/kafka/message_maker.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/near_match.h"
#include "common/base/status_macros.h"
#include "common/config/job_facts.h"
#include "data_loader/parser/bad_text.h"
#include "data_loader/parser/number.h"

namespace satrap {
namespace {

// The names of a line's columns, in order; empty if the format names none.
std::vector<std::string> ColumnNames(const DataConfig& data) {
  std::vector<std::string> names;
  if (data.has_csv()) {
    for (const ColumnConfig& column : data.csv().columns()) names.push_back(column.name());
  } else if (data.has_criteo_tsv()) {
    const RecordSchema schema = TextSchemaOf(data);
    names.push_back("label");
    names.insert(names.end(), schema.numerics.begin(), schema.numerics.end());
    names.insert(names.end(), schema.ids.begin(), schema.ids.end());
  }
  return names;
}

}  // namespace

void RecordOfRow(const RecordSchema& schema, const RecordBlock& block, size_t row, Record* record) {
  record->Clear();
  for (size_t i = 0; i < schema.ids.size(); ++i) {
    record->add_ids(block.ids(row)[i]);
    if (block.IsMissing(row, i)) record->add_missing_ids(static_cast<uint32_t>(i));
  }
  for (size_t i = 0; i < schema.id_lists.size(); ++i) {
    RecordIdList* const list = record->add_lists();
    for (const uint64_t id : block.list_ids(row, i)) list->add_ids(id);
    for (const float value : block.list_values(row, i)) list->add_values(value);
  }
  for (size_t i = 0; i < schema.numerics.size(); ++i) record->add_numerics(block.numerics(row)[i]);
  const float* const labels = block.labels(row);
  for (size_t i = 0; i < schema.labels.size(); ++i) record->add_labels(labels[i]);
  if (schema.has_weight) record->set_weight(block.weight(row));
  if (schema.has_group) record->set_group(block.group(row));
  if (schema.has_time) record->set_time(block.time(row));
}

MessageMaker::MessageMaker(const MessageOptions& options, const DataConfig* data)
    : options_(options) {
  if (!options.separator.empty()) separator_ = options.separator[0];
  if (data == nullptr) return;
  parser_ = NewParser(*data, TRAIN_STREAM);
  schema_ = TextSchemaOf(*data);
  block_ = std::make_unique<RecordBlock>(schema_);
  if (data->has_criteo_tsv()) separator_ = '\t';
  if (!data->has_csv()) return;
  const CsvFormat& csv = data->csv();
  if (!csv.separator().empty()) separator_ = csv.separator()[0];
  if (QuotesOf(csv)) quotes_ = QuoteRules{separator_, csv.trim(), csv.comment_prefix()};
}

absl::StatusOr<std::unique_ptr<MessageMaker>> MessageMaker::Create(const MessageOptions& options,
                                                                   const DataConfig* data) {
  const bool text = data == nullptr || !data->has_synthetic();
  if (!text) return absl::InvalidArgumentError("the job's data is synthetic: it has no lines");
  if (options.format == MessageOptions::kRecord && data == nullptr) {
    return absl::InvalidArgumentError("--format record needs --job, which says what a line holds");
  }
  if (options.format == MessageOptions::kRecord && options.lines_per_message != 1) {
    return absl::InvalidArgumentError("--lines_per_message must be 1 with --format record");
  }
  if (options.lines_per_message < 1) {
    return absl::InvalidArgumentError("--lines_per_message must be at least 1");
  }
  std::unique_ptr<MessageMaker> self(new MessageMaker(options, data));
  ASSIGN_OR_RETURN(self->key_, self->FindColumn(options.key_column, data));
  ASSIGN_OR_RETURN(self->time_, self->FindColumn(options.time_column, data));
  return self;
}

absl::StatusOr<int> MessageMaker::FindColumn(const std::string& name,
                                             const DataConfig* data) const {
  if (name.empty()) return -1;
  const std::vector<std::string> names =
      data == nullptr ? std::vector<std::string>() : ColumnNames(*data);
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<int>(i);
  }
  int number;
  if (absl::SimpleAtoi(name, &number) && number >= 1) return number - 1;
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no column ", name,
      names.empty() ? "; without --job, name a column by its number, counted from 1" : "",
      DidYouMean(name, names)));
}

absl::StatusOr<std::string> MessageMaker::Field(absl::string_view line, int column) {
  absl::string_view rest = line;
  if (quotes_.has_value()) {
    QuotedFields fields(line, &*quotes_, &scratch_);
    for (int i = 0; !fields.done(); ++i) {
      absl::string_view field;
      if (fields.Next(&field) != QuotedFields::Result::kField) break;
      if (i == column) return std::string(field);
    }
  } else {
    for (int i = 0;; ++i) {
      const size_t end = rest.find(separator_);
      if (i == column) return std::string(rest.substr(0, end));
      if (end == absl::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no column ", column + 1, " in the line: ", ShownText(line)));
}

absl::Status MessageMaker::Begin(absl::string_view line) {
  open_ = Message();
  if (key_ >= 0) {
    ASSIGN_OR_RETURN(open_.key, Field(line, key_));
  }
  if (time_ < 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string text, Field(line, time_));
  // Refuse a missing or negative time: the broker would replace a missing one by the time of
  // writing, and a negative one has no meaning.
  if (!ParseTime(absl::StripAsciiWhitespace(text), options_.time_unit_ms, &open_.time_ms) ||
      open_.time_ms <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "column ", time_ + 1, " holds ", ShownText(text),
        ", but a time (a number above 0) is expected, in the line: ", ShownText(line)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> MessageMaker::Add(absl::string_view line, Message* message) {
  if (line.empty()) return false;
  if (options_.format == MessageOptions::kRecord) {
    block_->Clear();
    const ParseResult result = parser_->Parse(line, block_.get());
    if (result.kind == ParseResult::kBad) {
      return absl::InvalidArgumentError(
          absl::StrCat(result.reason, " in the line: ", ShownText(line)));
    }
    if (result.kind != ParseResult::kRecord) return false;
    RETURN_IF_ERROR(Begin(line));
    RecordOfRow(schema_, *block_, 0, &record_);
    open_.value = record_.SerializeAsString();
  } else {
    if (open_.lines == 0) {
      RETURN_IF_ERROR(Begin(line));
    } else {
      open_.value.push_back('\n');
    }
    open_.value.append(line.data(), line.size());
  }
  ++open_.lines;
  return open_.lines == static_cast<uint64_t>(options_.lines_per_message) && Finish(message);
}

bool MessageMaker::Finish(Message* message) {
  if (open_.lines == 0) return false;
  *message = std::move(open_);
  open_ = Message();
  return true;
}

}  // namespace satrap
