#include "data_loader/kafka/message_parser.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "data_loader/parser/bad_text.h"
#include "data_loader/parser/record_parser.h"
#include "data_loader/parser/string_id.h"
#include "data_loader/source/line_reader.h"
#include "data_loader/source/quoting.h"

namespace satrap {
namespace {

std::string SeveralLines(absl::string_view message) {
  return absl::StrCat("several lines in a message, ", ShownText(message),
                      "; only data.kafka.format LINES reads them");
}

// The line without its line end.
absl::string_view WithoutLineEnd(absl::string_view line) {
  if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

}  // namespace

MessageParser::MessageParser(const DataConfig& data, const KafkaConfig& kafka, Stream stream,
                             const RecordCheck* check)
    : format_(kafka.format()),
      check_(check),
      parser_(format_ == KafkaConfig::RECORD ? NewRecordParser(TextSchemaOf(data))
                                             : NewParser(data, stream)),
      quotes_(parser_->multiline()) {
  const RecordSchema schema = SchemaOf(data);
  const size_t text_ids = schema.ids.size() - schema.message_ids;
  const size_t text_numerics = schema.numerics.size() - schema.message_numerics;
  for (const KafkaColumn& column : kafka.columns()) {
    const bool is_time = column.from() == KafkaColumn::TIMESTAMP;
    const int index =
        is_time ? schema.IndexOfNumeric(column.name()) : schema.IndexOfId(column.name());
    const size_t first = is_time ? text_numerics : text_ids;
    CHECK(index >= static_cast<int>(first)) << "two columns " << column.name();
    columns_.push_back({column.from(), column.header(), static_cast<size_t>(index) - first});
  }
}

void MessageParser::SetColumns(const MessageBatch& batch, size_t i, RecordBlock* records) const {
  for (const Column& column : columns_) {
    if (column.from == KafkaColumn::TIMESTAMP) {
      const int64_t time = batch.time_ms(i);
      records->SetMessageNumeric(column.index,
                                 time < 0 ? kMissingNumeric : static_cast<float>(time));
      continue;
    }
    const auto text =
        column.from == KafkaColumn::KEY ? batch.key(i) : batch.header(i, column.header.c_str());
    // A missing or empty string is a missing id, as in text formats.
    if (!text.has_value() || text->empty()) {
      records->SetMessageId(column.index, absl::nullopt);
    } else {
      records->SetMessageId(column.index, StringId(*text));
    }
  }
}

void MessageParser::Parse(const MessageBatch& batch, size_t i, RecordBlock* records, Found* found) {
  found->lines.clear();
  found->bad.clear();
  found->empty_lines = 0;
  found->comments = 0;
  const absl::string_view value = batch.value(i);
  if (value.empty()) {
    found->empty_lines = 1;
    return;
  }
  const int64_t time = batch.time_ms(i);
  records->set_message_time(time < 0 ? 0 : time);
  if (!columns_.empty()) SetColumns(batch, i, records);
  if (format_ == KafkaConfig::RECORD) return ParseOne(value, 0, records, found);
  if (format_ == KafkaConfig::LINES) return ParseLines(value, records, found);
  const absl::string_view line = WithoutLineEnd(value);
  if (!quotes_.has_value() && std::memchr(line.data(), '\n', line.size()) != nullptr) {
    found->bad.push_back({0, SeveralLines(line), line, RecordCheck::Fault::kNone});
    return;
  }
  ParseOne(line, 0, records, found);
}

void MessageParser::ParseLines(absl::string_view value, RecordBlock* records, Found* found) {
  uint32_t line = 0;
  while (!value.empty()) {
    uint32_t lines = 1;
    const size_t size = RecordEnd(value, &lines);
    ParseOne(WithoutLineEnd(value.substr(0, size)), line, records, found);
    value.remove_prefix(size);
    line += lines;
  }
}

size_t MessageParser::RecordEnd(absl::string_view rest, uint32_t* lines) const {
  const auto end_of_line = [rest](size_t from) {
    const size_t newline = rest.find('\n', from);
    return newline == absl::string_view::npos ? rest.size() : newline + 1;
  };
  const size_t first = end_of_line(0);
  if (!quotes_.has_value()) return first;
  RecordEndFinder finder(&*quotes_);
  size_t begin = 0;
  size_t end = first;
  while (finder.EndsWithinQuotes(rest.substr(begin, end - begin))) {
    // If the message never closes a quote, the rest of the message would become one record. So, as
    // in a file, take only the first line, which is then bad.
    if (end == rest.size()) {
      *lines = 1;
      return first;
    }
    begin = end;
    end = end_of_line(end);
    ++*lines;
  }
  return end;
}

void MessageParser::ParseOne(absl::string_view text, uint32_t line, RecordBlock* records,
                             Found* found) {
  if (text.size() > kMaxLineBytes && format_ != KafkaConfig::RECORD) {
    found->bad.push_back({line, LineTooLong(text), text, RecordCheck::Fault::kNone});
    return;
  }
  const ParseResult result = parser_->Parse(text, records);
  switch (result.kind) {
    case ParseResult::kRecord: {
      if (first_labels_ != nullptr) first_labels_->Add(records->labels(records->rows() - 1));
      BadRecord refused{line, "", text, RecordCheck::Fault::kNone};
      if (check_ != nullptr) refused.fault = check_->Check(*records, &refused.reason);
      if (refused.fault == RecordCheck::Fault::kNone) {
        found->lines.push_back(line);
      } else {
        records->DropLastRow();
        found->bad.push_back(std::move(refused));
      }
      break;
    }
    case ParseResult::kEmpty:
      ++found->empty_lines;
      break;
    case ParseResult::kComment:
      ++found->comments;
      break;
    case ParseResult::kBad:
      found->bad.push_back({line, result.reason, text, RecordCheck::Fault::kNone});
      break;
  }
}

}  // namespace satrap
