#include "data_loader/parser/csv_column.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "data_loader/parser/bad_text.h"

namespace satrap {
namespace {

// The spellings of the label `number`, which is 1 or 0. The job may give them. By default they are
// "1" or "0" and, by the newest record rules, also "1.0" or "0.0", because pandas writes a column
// of integers as floats when some of its values are missing.
std::vector<std::string> SpellingsOf(int number,
                                     const google::protobuf::RepeatedPtrField<std::string>& given,
                                     RecordRules rules) {
  if (!given.empty()) return {given.begin(), given.end()};
  std::vector<std::string> spellings = {absl::StrCat(number)};
  if (rules == RecordRules::kNewest) spellings.push_back(absl::StrCat(number, ".0"));
  return spellings;
}

// The end of a reason: how a field of this column can say that it is missing.
std::string OrMissing(const CsvColumn& column) {
  std::vector<std::string> missing(column.missing_values.begin(), column.missing_values.end());
  if (missing.empty()) {
    return "; if it stands for a missing value, add it to the column's missing_values";
  }
  std::sort(missing.begin(), missing.end());
  return absl::StrCat("; a missing value is written as the empty string or ", ShownTexts(missing),
                      " (missing_values)");
}

}  // namespace

CsvColumn MakeCsvColumn(const ColumnConfig& config, Stream stream, RecordRules rules) {
  CsvColumn column;
  column.name = config.name();
  column.kind = config.kind();
  if (config.separator().size() == 1) column.separator = config.separator()[0];
  if (!config.value_separator().empty()) column.value_separator = config.value_separator()[0];
  column.missing_values.insert(config.missing_values().begin(), config.missing_values().end());
  column.positive_values = SpellingsOf(1, config.positive_values(), rules);
  column.negative_values = SpellingsOf(0, config.negative_values(), rules);
  column.numeric_label = config.numeric_label();
  column.has_vocabulary = config.vocabulary_size() > 0;
  const bool test = stream == TEST_STREAM && config.test_vocabulary_size() > 0;
  uint64_t position = 0;
  for (const std::string& word : test ? config.test_vocabulary() : config.vocabulary()) {
    column.vocabulary.emplace(word, position++);
  }
  return column;
}

std::string BadNumeric(const CsvColumn& column, absl::string_view field) {
  return absl::StrCat(ColumnHolds(column.name, field), kNumberBelongs, OrMissing(column));
}

std::string BadLabel(const CsvColumn& column, absl::string_view field) {
  const std::string holds = ColumnHolds(column.name, field);
  if (column.numeric_label) return absl::StrCat(holds, kNumberBelongs, OrMissing(column));
  if (column.has_vocabulary) {
    std::vector<std::pair<uint64_t, std::string>> by_position;
    for (const auto& [word, position] : column.vocabulary) by_position.emplace_back(position, word);
    std::sort(by_position.begin(), by_position.end());
    std::vector<std::string> words;
    for (auto& [position, word] : by_position) words.push_back(std::move(word));
    return absl::StrCat(holds, ", which is not a class of its vocabulary: ", ShownTexts(words),
                        OrMissing(column));
  }
  return absl::StrCat(holds, ", but a label is expected: ", ShownTexts(column.positive_values),
                      " for 1 (positive_values), ", ShownTexts(column.negative_values),
                      " for 0 (negative_values), or any number with numeric_label",
                      OrMissing(column));
}

std::string BadWeight(const CsvColumn& column, absl::string_view field) {
  return absl::StrCat(ColumnHolds(column.name, field),
                      ", but a weight is expected: a number >= 0, never missing");
}

std::string BadTime(const CsvColumn& column, absl::string_view field) {
  return absl::StrCat(ColumnHolds(column.name, field),
                      ", but a time is expected: milliseconds since 1970, such as 1700000000000, "
                      "never missing");
}

std::string NoValue(const CsvColumn& column, absl::string_view element) {
  const std::string separator(1, column.value_separator.value_or(':'));
  return absl::StrCat(ColumnHolds(column.name, element),
                      ", but an id with its value is expected, such as ",
                      ShownText(absl::StrCat("ID", separator, "0.5")), " (value_separator)");
}

std::string BadValue(const CsvColumn& column, absl::string_view value) {
  return absl::StrCat(ColumnHolds(column.name, value), " as the value of an id", kNumberBelongs);
}

}  // namespace satrap
