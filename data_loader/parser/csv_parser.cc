#include "data_loader/parser/csv_parser.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "common/config/job_facts.h"
#include "data_loader/parser/bad_text.h"
#include "data_loader/parser/csv_column.h"
#include "data_loader/parser/number.h"
#include "data_loader/parser/string_id.h"
#include "data_loader/source/quoting.h"

namespace satrap {
namespace {

// A linear search, because labels usually have only one or two spellings.
bool Contains(const std::vector<std::string>& values, absl::string_view value) {
  for (const std::string& candidate : values) {
    if (candidate == value) return true;
  }
  return false;
}

// Removes spaces and tabs at both ends, except `kept`.
absl::string_view Trim(absl::string_view text, absl::optional<char> kept = absl::nullopt) {
  const auto is_space = [kept](char c) { return (c == ' ' || c == '\t') && c != kept; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

constexpr size_t kMaxPrintableBytes = 200;

// The names for an error message, escaped and shortened: a file may contain any bytes, and any
// number of names.
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
  CsvParser(const CsvFormat& format, Stream stream, RecordRules rules)
      : Parser(format.comment_prefix()),
        separator_(format.separator()[0]),
        header_(format.header()),
        trim_(format.trim()),
        trim_lists_(format.trim_lists()),
        float_times_(rules == RecordRules::kNewest),
        quotes_(QuotesOf(format)),
        multiline_(format.multiline()),
        rules_{separator_, trim_, format.comment_prefix()} {
    size_t ids = 0, lists = 0, numerics = 0, labels = 0;
    for (const ColumnConfig& config : format.columns()) {
      CsvColumn column = MakeCsvColumn(config, stream, rules);
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
    const std::string reason = HeaderNames(line, &got);
    if (!reason.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("the header cannot be read: ", reason));
    }
    size_t equal = 0;  // how many of the first columns are equal
    for (size_t i = 0; i < columns_.size(); ++i) {
      // An ignored column without a name matches any name.
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
    if (reason == nullptr && !block->KnowsALabel()) return Bad(NoLabel());
    return reason;
  }

  const char* ParseFields(absl::string_view line, RecordBlock* block) {
    if (const void* nul = std::memchr(line.data(), 0, line.size()); nul != nullptr) {
      return Bad(NulByte(line, static_cast<size_t>(static_cast<const char*>(nul) - line.data())));
    }
    const char* at = line.data();
    const char* end = at + line.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (at == nullptr) return Bad(TooFewColumns(i, line));
      // Quotes can only open at the first byte of a field, so a record without quotes costs one
      // comparison per field. Once there is a quoted field, separators within quotes must be
      // recognised.
      if (quotes_ && OpensQuotes(at, end)) return ParseQuotedFields(line, at, i, block);
      const void* found = std::memchr(at, separator_, static_cast<size_t>(end - at));
      const char* field_end = found == nullptr ? end : static_cast<const char*>(found);
      absl::string_view field(at, static_cast<size_t>(field_end - at));
      at = found == nullptr ? nullptr : field_end + 1;
      if (trim_) field = Trim(field);
      const char* reason = ParseField(columns_[i], field, block);
      if (reason != nullptr) return reason;
    }
    if (at == nullptr) return nullptr;
    return Bad(TooManyColumns(absl::string_view(at, static_cast<size_t>(end - at))));
  }

  // Whether the field that begins at `at` is quoted.
  bool OpensQuotes(const char* at, const char* end) const {
    if (trim_) {
      while (at != end && (*at == ' ' || *at == '\t')) ++at;
    }
    return at != end && *at == '"';
  }

  // Does the work of ParseFields from column `first` on, which is the first quoted column and
  // begins at `at`.
  const char* ParseQuotedFields(absl::string_view line, const char* at, size_t first,
                                RecordBlock* block) {
    QuotedFields fields(line.substr(static_cast<size_t>(at - line.data())), &rules_, &scratch_);
    for (size_t i = first; i < columns_.size(); ++i) {
      if (fields.done()) return Bad(TooFewColumns(i, line));
      absl::string_view field;
      const QuotedFields::Result result = fields.Next(&field);
      if (result != QuotedFields::Result::kField) {
        return Bad(BadQuotes(result, absl::StrCat("column ", NameOf(i)), fields.rest()));
      }
      const char* reason = ParseField(columns_[i], field, block);
      if (reason != nullptr) return reason;
    }
    return fields.done() ? nullptr : Bad(TooManyColumns(fields.rest()));
  }

  // Reads the names in a header line. Returns "", or the reason why they cannot be read.
  std::string HeaderNames(absl::string_view line, std::vector<std::string>* names) const {
    if (!quotes_) {
      for (absl::string_view name : absl::StrSplit(line, separator_)) {
        names->emplace_back(trim_ ? Trim(name) : name);
      }
      return "";
    }
    std::string scratch;
    QuotedFields fields(line, &rules_, &scratch);
    while (!fields.done()) {
      absl::string_view name;
      const QuotedFields::Result result = fields.Next(&name);
      if (result != QuotedFields::Result::kField) {
        return BadQuotes(result, absl::StrCat("name ", names->size() + 1), fields.rest());
      }
      names->emplace_back(name);
    }
    return "";
  }

  // --- Reasons. Only bad records pay for them ---
  //
  // The name of a column, or its number, because ignored columns may have no name.
  std::string NameOf(size_t column) const {
    const std::string& name = columns_[column].name;
    return name.empty() ? absl::StrCat("number ", column + 1) : ShownText(name);
  }
  std::string TooFewColumns(size_t there, absl::string_view line) const {
    return absl::StrCat("too few columns: ", there, " of ", columns_.size(), " between ",
                        ShownText(absl::string_view(&separator_, 1)), " (data.csv.separator), in ",
                        ShownText(line), "; column ", NameOf(there), " is the first missing one");
  }
  std::string TooManyColumns(absl::string_view rest) const {
    return absl::StrCat("too many columns: the job names ", columns_.size(), ", and after column ",
                        NameOf(columns_.size() - 1), " there is ", ShownText(rest));
  }
  // `where` says which field it is, and `text` begins with that field.
  std::string BadQuotes(QuotedFields::Result result, absl::string_view where,
                        absl::string_view text) const {
    const std::string in = absl::StrCat(" in ", where, ": ", ShownText(text));
    if (result == QuotedFields::Result::kTextAfterQuote) {
      return absl::StrCat("text after a closing quote", in,
                          "; a quote within quotes is written twice");
    }
    return multiline_
               ? absl::StrCat("a quote is not closed by the end of the file or within 1 MiB", in)
               : absl::StrCat("a quote is not closed on its line", in,
                              "; only data.csv.multiline allows that");
  }
  std::string NulByte(absl::string_view line, size_t at) const {
    size_t column = 0;
    std::string scratch;
    // Find the column of the NUL byte by counting the fields before it.
    const absl::string_view before = line.substr(0, at);
    if (quotes_) {
      QuotedFields fields(before, &rules_, &scratch);
      absl::string_view field;
      while (fields.Next(&field) == QuotedFields::Result::kField && !fields.done()) ++column;
    } else {
      column = static_cast<size_t>(std::count(before.begin(), before.end(), separator_));
    }
    return absl::StrCat("a NUL byte at byte ", at, " of the record, in column ",
                        column < columns_.size() ? NameOf(column) : absl::StrCat(column + 1), ": ",
                        ShownText(line.substr(at < 20 ? 0 : at - 20)), "; text has none");
  }
  std::string NoLabel() const {
    std::vector<std::string> names;
    for (const CsvColumn& column : columns_) {
      if (column.kind == ColumnConfig::LABEL) names.push_back(column.name);
    }
    return absl::StrCat("no label is known: ", ShownTexts(names),
                        names.size() == 1 ? " is missing" : " are all missing");
  }

  // ParseField and ParseList return null, or the reason why the record is bad. They are inlined
  // into both callers, because a call would take about 5 % of the time of a whole record.
  ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* ParseField(const CsvColumn& column,
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
        return ParseNumber(field, true, value) ? nullptr : Bad(BadNumeric(column, field));
      }
      case ColumnConfig::LABEL: {
        float* label = block->row_labels() + column.index;
        if (column.numeric_label || column.has_vocabulary) return ParseLabel(column, field, label);
        const bool positive = Contains(column.positive_values, field);
        *label = positive ? 1.0f : 0.0f;
        if (positive || Contains(column.negative_values, field)) return nullptr;
        if (!column.IsMissing(field)) return Bad(BadLabel(column, field));
        *label = kMissingLabel;
        return nullptr;
      }
      case ColumnConfig::WEIGHT: {
        float weight;
        if (!ParseNumber(field, true, &weight) || weight < 0) return Bad(BadWeight(column, field));
        block->set_weight(weight);
        return nullptr;
      }
      case ColumnConfig::GROUP:
        block->set_group(StringId(field));
        return nullptr;
      case ColumnConfig::TIME: {
        int64_t time;
        const bool is_time = float_times_ ? ParseTime(field, 1, &time) : ParseInteger(field, &time);
        if (!is_time) return Bad(BadTime(column, field));
        block->set_time(time);
        return nullptr;
      }
    }
    return nullptr;
  }

  // Reads a label, which is either a number or one of the spellings of its class.
  const char* ParseLabel(const CsvColumn& column, absl::string_view field, float* label) {
    if (column.IsMissing(field)) {
      *label = kMissingLabel;
      return nullptr;
    }
    if (column.numeric_label) {
      return ParseNumber(field, true, label) ? nullptr : Bad(BadLabel(column, field));
    }
    uint64_t position;
    if (!column.IdOf(field, &position)) return Bad(BadLabel(column, field));
    *label = static_cast<float>(position);
    return nullptr;
  }

  const char* ParseList(const CsvColumn& column, absl::string_view field, RecordBlock* block) {
    for (absl::string_view element : absl::StrSplit(field, column.separator)) {
      if (trim_lists_) element = Trim(element, column.value_separator);
      float value = 1;
      if (column.value_separator.has_value() && !element.empty()) {
        const size_t at = element.rfind(*column.value_separator);
        if (at == absl::string_view::npos) return Bad(NoValue(column, element));
        absl::string_view number = element.substr(at + 1);
        element = element.substr(0, at);
        if (trim_lists_) {
          number = Trim(number);
          element = Trim(element);
        }
        if (!ParseNumber(number, true, &value)) return Bad(BadValue(column, number));
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
  const bool trim_lists_;
  const bool float_times_;
  const bool quotes_;
  const bool multiline_;
  const QuoteRules rules_;
  std::vector<CsvColumn> columns_;
  std::string scratch_;  // used by ParseQuotedFields
};

}  // namespace

std::unique_ptr<Parser> NewCsvParser(const CsvFormat& format, Stream stream, RecordRules rules) {
  return std::make_unique<CsvParser>(format, stream, rules);
}

}  // namespace satrap
