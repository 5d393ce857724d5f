#include "data_loader/parser/csv_parser.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "common/config/job_facts.h"
#include "data_loader/parser/number.h"
#include "data_loader/parser/string_id.h"
#include "data_loader/source/quoting.h"

namespace satrap {
namespace {

// One column of the schema, with its defaults filled in and its strings in sets that look up fast.
struct Column {
  std::string name;
  ColumnConfig::Kind kind = ColumnConfig::IGNORE;
  size_t index = 0;  // among the columns of its kind in the block
  char separator = '|';
  absl::optional<char> value_separator;
  absl::flat_hash_set<std::string> missing_values;
  std::vector<std::string> positive_values;
  std::vector<std::string> negative_values;
  bool numeric_label = false;
  bool has_vocabulary = false;
  absl::flat_hash_map<std::string, uint64_t> vocabulary;

  bool IsMissing(absl::string_view field) const {
    return field.empty() || (!missing_values.empty() && missing_values.contains(field));
  }
  // False if there is a vocabulary and the string is not in it.
  bool IdOf(absl::string_view text, uint64_t* id) const {
    if (!has_vocabulary) {
      *id = StringId(text);
      return true;
    }
    const auto at = vocabulary.find(text);
    if (at == vocabulary.end()) return false;
    *id = at->second;
    return true;
  }
};

// Linear, because labels have one or two spellings.
bool Contains(const std::vector<std::string>& values, absl::string_view value) {
  for (const std::string& candidate : values) {
    if (candidate == value) return true;
  }
  return false;
}

std::vector<std::string> ValuesOr(const google::protobuf::RepeatedPtrField<std::string>& values,
                                  const char* otherwise) {
  if (values.empty()) return {otherwise};
  return {values.begin(), values.end()};
}

Column MakeColumn(const ColumnConfig& config, Stream stream) {
  Column column;
  column.name = config.name();
  column.kind = config.kind();
  if (config.separator().size() == 1) column.separator = config.separator()[0];
  if (!config.value_separator().empty()) column.value_separator = config.value_separator()[0];
  column.missing_values.insert(config.missing_values().begin(), config.missing_values().end());
  column.positive_values = ValuesOr(config.positive_values(), "1");
  column.negative_values = ValuesOr(config.negative_values(), "0");
  column.numeric_label = config.numeric_label();
  column.has_vocabulary = config.vocabulary_size() > 0;
  const bool test = stream == TEST_STREAM && config.test_vocabulary_size() > 0;
  uint64_t position = 0;
  for (const std::string& word : test ? config.test_vocabulary() : config.vocabulary()) {
    column.vocabulary.emplace(word, position++);
  }
  return column;
}

absl::string_view Trim(absl::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

constexpr char kTooFewColumns[] = "too few columns";
constexpr char kTooManyColumns[] = "too many columns";
constexpr size_t kMaxPrintableBytes = 200;

// The names, escaped and cut off for an error message: a file may hold any bytes, and any number of
// them.
std::string Printable(const std::vector<std::string>& names) {
  std::string text;
  for (const char c : absl::StrJoin(names, ", ")) {
    if (text.size() >= kMaxPrintableBytes) return text + "...";
    text += absl::CHexEscape(absl::string_view(&c, 1));
  }
  return text;
}

class CsvParser final : public Parser {
 public:
  CsvParser(const CsvFormat& format, Stream stream)
      : Parser(format.comment_prefix()),
        separator_(format.separator()[0]),
        header_(format.header()),
        trim_(format.trim()),
        quotes_(QuotesOf(format)),
        multiline_(format.multiline()),
        rules_{separator_, trim_, format.comment_prefix()} {
    size_t ids = 0, lists = 0, numerics = 0, labels = 0;
    for (const ColumnConfig& config : format.columns()) {
      Column column = MakeColumn(config, stream);
      if (column.kind == ColumnConfig::ID) column.index = ids++;
      if (column.kind == ColumnConfig::MULTI_ID) column.index = lists++;
      if (column.kind == ColumnConfig::NUMERIC) column.index = numerics++;
      if (column.kind == ColumnConfig::LABEL) column.index = labels++;
      columns_.push_back(std::move(column));
    }
  }

  bool has_header() const override { return header_; }

  absl::Status CheckHeader(absl::string_view line) const override {
    std::vector<std::string> expected;
    std::vector<std::string> got;
    const char* reason = HeaderNames(line, &got);
    if (reason != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("the header cannot be read: ", reason));
    }
    size_t equal = 0;  // how many of the first columns are equal
    for (size_t i = 0; i < columns_.size(); ++i) {
      // A column that is ignored need not be named.
      const bool any = columns_[i].kind == ColumnConfig::IGNORE && columns_[i].name.empty();
      expected.push_back(any ? "(any)" : columns_[i].name);
      if (equal == i && i < got.size() && (any || got[i] == columns_[i].name)) ++equal;
    }
    if (equal == columns_.size() && equal == got.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "the header names the columns ", Printable(got), "; the job's columns are ",
        absl::StrJoin(expected, ", "), "; the first difference is in column ", equal + 1));
  }

  absl::optional<QuoteRules> multiline() const override {
    return multiline_ ? absl::make_optional(rules_) : absl::nullopt;
  }

 private:
  const char* ParseRow(absl::string_view line, RecordBlock* block) override {
    const char* reason = ParseFields(line, block);
    if (reason == nullptr && !block->KnowsALabel()) return "no label is known";
    return reason;
  }

  const char* ParseFields(absl::string_view line, RecordBlock* block) {
    if (std::memchr(line.data(), 0, line.size()) != nullptr) return "a NUL byte";
    const char* at = line.data();
    const char* end = at + line.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (at == nullptr) return kTooFewColumns;
      // Only the first byte of a field can open quotes, so a record without them pays one comparison
      // a field. From the first quoted field on, the separators within quotes matter.
      if (quotes_ && OpensQuotes(at, end)) {
        return ParseQuotedFields(absl::string_view(at, static_cast<size_t>(end - at)), i, block);
      }
      const void* found = std::memchr(at, separator_, static_cast<size_t>(end - at));
      const char* field_end = found == nullptr ? end : static_cast<const char*>(found);
      absl::string_view field(at, static_cast<size_t>(field_end - at));
      at = found == nullptr ? nullptr : field_end + 1;
      if (trim_) field = Trim(field);
      const char* reason = ParseField(columns_[i], field, block);
      if (reason != nullptr) return reason;
    }
    return at == nullptr ? nullptr : kTooManyColumns;
  }

  // Whether the field at `at` is quoted.
  bool OpensQuotes(const char* at, const char* end) const {
    if (trim_) {
      while (at != end && (*at == ' ' || *at == '\t')) ++at;
    }
    return at != end && *at == '"';
  }

  // The rest of ParseFields, from column `first` on, the first that is quoted.
  const char* ParseQuotedFields(absl::string_view rest, size_t first, RecordBlock* block) {
    QuotedFields fields(rest, &rules_, &scratch_);
    for (size_t i = first; i < columns_.size(); ++i) {
      if (fields.done()) return kTooFewColumns;
      absl::string_view field;
      const QuotedFields::Result result = fields.Next(&field);
      if (result != QuotedFields::Result::kField) return ReasonOf(result);
      const char* reason = ParseField(columns_[i], field, block);
      if (reason != nullptr) return reason;
    }
    return fields.done() ? nullptr : kTooManyColumns;
  }

  // The names in a header line, or the reason why it has none.
  const char* HeaderNames(absl::string_view line, std::vector<std::string>* names) const {
    if (!quotes_) {
      for (absl::string_view name : absl::StrSplit(line, separator_)) {
        names->emplace_back(trim_ ? Trim(name) : name);
      }
      return nullptr;
    }
    std::string scratch;
    QuotedFields fields(line, &rules_, &scratch);
    while (!fields.done()) {
      absl::string_view name;
      const QuotedFields::Result result = fields.Next(&name);
      if (result != QuotedFields::Result::kField) return ReasonOf(result);
      names->emplace_back(name);
    }
    return nullptr;
  }

  const char* ReasonOf(QuotedFields::Result result) const {
    if (result == QuotedFields::Result::kTextAfterQuote) return "text after a closing quote";
    return multiline_ ? "a quote is not closed by the end of the file or within 1 MiB"
                      : "a quote is not closed on its line; only data.csv.multiline allows that";
  }

  // Null, or the reason why the record is bad; so does ParseList. Inlined into both callers: as a
  // call it takes some 5 % of the time of a whole record.
  static ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* ParseField(const Column& column,
                                                                    absl::string_view field,
                                                                    RecordBlock* block) {
    switch (column.kind) {
      case ColumnConfig::IGNORE:
        return nullptr;
      case ColumnConfig::ID: {
        uint64_t* id = block->row_ids() + column.index;
        if (column.IsMissing(field) || !column.IdOf(field, id)) block->SetMissing(column.index);
        return nullptr;
      }
      case ColumnConfig::MULTI_ID:
        return column.IsMissing(field) ? nullptr : ParseList(column, field, block);
      case ColumnConfig::NUMERIC: {
        float* value = block->row_numerics() + column.index;
        if (column.IsMissing(field)) {
          *value = kMissingNumeric;
          return nullptr;
        }
        return ParseNumber(field, true, value) ? nullptr
                                               : "a numeric column does not hold a number";
      }
      case ColumnConfig::LABEL: {
        float* label = block->row_labels() + column.index;
        if (column.numeric_label || column.has_vocabulary) return ParseLabel(column, field, label);
        const bool positive = Contains(column.positive_values, field);
        *label = positive ? 1.0f : 0.0f;
        if (positive || Contains(column.negative_values, field)) return nullptr;
        if (!column.IsMissing(field)) return "an unknown label";
        *label = kMissingLabel;
        return nullptr;
      }
      case ColumnConfig::WEIGHT: {
        float weight;
        if (!ParseNumber(field, true, &weight) || weight < 0)
          return "the weight is not a number >= 0";
        block->set_weight(weight);
        return nullptr;
      }
      case ColumnConfig::GROUP:
        block->set_group(StringId(field));
        return nullptr;
      case ColumnConfig::TIME: {
        int64_t time;
        if (!ParseInteger(field, &time)) return "the time is not an integer";
        block->set_time(time);
        return nullptr;
      }
    }
    return nullptr;
  }

  // A number or a class.
  static const char* ParseLabel(const Column& column, absl::string_view field, float* label) {
    if (column.IsMissing(field)) {
      *label = kMissingLabel;
      return nullptr;
    }
    if (column.numeric_label) {
      return ParseNumber(field, true, label) ? nullptr : "a numeric label is not a number";
    }
    uint64_t position;
    if (!column.IdOf(field, &position)) return "an unknown label";
    *label = static_cast<float>(position);
    return nullptr;
  }

  static const char* ParseList(const Column& column, absl::string_view field, RecordBlock* block) {
    for (absl::string_view element : absl::StrSplit(field, column.separator)) {
      float value = 1;
      if (column.value_separator.has_value() && !element.empty()) {
        const size_t at = element.rfind(*column.value_separator);
        if (at == absl::string_view::npos) return "an id in a list has no value";
        if (!ParseNumber(element.substr(at + 1), true, &value))
          return "a value in a list is not a number";
        element = element.substr(0, at);
      }
      uint64_t id;
      if (column.IsMissing(element) || !column.IdOf(element, &id)) continue;
      block->AppendToList(column.index, id, value);
    }
    return nullptr;
  }

  const char separator_;
  const bool header_;
  const bool trim_;
  const bool quotes_;
  const bool multiline_;
  const QuoteRules rules_;
  std::vector<Column> columns_;
  std::string scratch_;  // of ParseQuotedRow
};

}  // namespace

std::unique_ptr<Parser> NewCsvParser(const CsvFormat& format, Stream stream) {
  return std::make_unique<CsvParser>(format, stream);
}

}  // namespace satrap
