// What libsvm and libffm have in common: lines of tokens separated by spaces or tabs, of which the
// first is the label.

#ifndef SATRAP_DATA_LOADER_PARSER_TOKENS_H_
#define SATRAP_DATA_LOADER_PARSER_TOKENS_H_

#include "absl/strings/string_view.h"
#include "data_loader/parser/record_block.h"

namespace satrap {

// Removes the next token from the front of `*line`; false if only spaces and tabs are left.
inline bool NextToken(absl::string_view* line, absl::string_view* token) {
  const size_t from = line->find_first_not_of(" \t");
  if (from == absl::string_view::npos) return false;
  const size_t found = line->find_first_of(" \t", from);
  const size_t end = found == absl::string_view::npos ? line->size() : found;
  *token = line->substr(from, end - from);
  line->remove_prefix(end);
  return true;
}

// Removes the label from the front of `*line` and sets it in the row under construction: 1 for "1"
// and "+1", 0 for "0" and "-1". False if the first token is none of these.
inline bool TakeBinaryLabel(absl::string_view* line, RecordBlock* block) {
  absl::string_view token;
  if (!NextToken(line, &token)) return false;
  const bool positive = token == "1" || token == "+1";
  block->set_label(positive ? 1.0f : 0.0f);
  return positive || token == "0" || token == "-1";
}

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_TOKENS_H_
