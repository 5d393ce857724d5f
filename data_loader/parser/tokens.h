// The common parts of libsvm and libffm: a line consists of tokens separated by spaces or tabs, up
// to a comment, and the first token is the label.

#ifndef SATRAP_DATA_LOADER_PARSER_TOKENS_H_
#define SATRAP_DATA_LOADER_PARSER_TOKENS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "data_loader/parser/record_rules.h"
#include "google/protobuf/repeated_field.h"

namespace satrap {

// Begins a comment, as in SVMlight.
inline constexpr char kTokenComment[] = "#";

// Removes the next token from the front of `*line`. False if only spaces and tabs are left.
inline bool NextToken(absl::string_view* line, absl::string_view* token) {
  const size_t from = line->find_first_not_of(" \t");
  if (from == absl::string_view::npos) return false;
  const size_t found = line->find_first_of(" \t", from);
  const size_t end = found == absl::string_view::npos ? line->size() : found;
  *token = line->substr(from, end - from);
  line->remove_prefix(end);
  return true;
}

// Reads the first token of a line as its label. Thread-safe.
class TokenLabels {
 public:
  // `format` is "data.libsvm" or "data.libffm". The next two arguments are fields of that format.
  TokenLabels(std::string format, bool numeric_label,
              const google::protobuf::RepeatedField<float>& classes, RecordRules rules);

  // False, with *label unspecified, if the token is not a label.
  bool Read(absl::string_view token, float* label) const;

  // The reason (Parser::Bad) why `token` is not a label. If `token` is empty, the reason says that
  // the line has no token.
  std::string BadLabel(absl::string_view token) const;

 private:
  bool ReadAnySpelling(absl::string_view token, float* label) const;

  const std::string format_;
  const bool numeric_;
  const bool any_spelling_;  // "1.0" and "1e0" are "1"
  std::vector<std::string> class_names_;
  absl::flat_hash_map<float, float> classes_;  // label to class
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_TOKENS_H_
