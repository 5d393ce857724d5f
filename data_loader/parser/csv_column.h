// A column of a CSV file in the form that its parser uses, and the parser's reasons for bad fields.
// Thread-safe.

#ifndef SATRAP_DATA_LOADER_PARSER_CSV_COLUMN_H_
#define SATRAP_DATA_LOADER_PARSER_CSV_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "data_loader/parser/record_rules.h"
#include "data_loader/parser/string_id.h"
#include "proto/data.pb.h"
#include "proto/hot.pb.h"

namespace satrap {

// A column of the schema, with its defaults filled in and its strings in sets for fast look-up.
struct CsvColumn {
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

// Makes a column without its `index`, which the caller must set.
CsvColumn MakeCsvColumn(const ColumnConfig& config, Stream stream, RecordRules rules);

// The reasons (Parser::Bad) why the column cannot accept a field.
std::string BadNumeric(const CsvColumn& column, absl::string_view field);
std::string BadLabel(const CsvColumn& column, absl::string_view field);
std::string BadWeight(const CsvColumn& column, absl::string_view field);
std::string BadTime(const CsvColumn& column, absl::string_view field);
// The reason for a bad element of a list whose ids have values: the element has no value, or its
// value is not a number.
std::string NoValue(const CsvColumn& column, absl::string_view element);
std::string BadValue(const CsvColumn& column, absl::string_view value);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_CSV_COLUMN_H_
