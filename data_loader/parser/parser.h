// A Parser turns one record of a text format, usually a line, into one row of a RecordBlock. Each
// format decides which records are bad; docs/formats.md lists them.
//
// Ids: a string in an ID, MULTI_ID or GROUP column becomes the XXH64 of its bytes, even if it looks
// like a number. If the column has a vocabulary, the id is the string's position in it. The indices
// of libsvm and libffm are numbers, and the id is their value.
//
// A format implements ParseRow. Parse does what all formats have in common: empty lines, comments,
// and committing or abandoning the row.
//
// Not thread-safe, because a parser may keep scratch memory: use one object per thread.

#ifndef SATRAP_DATA_LOADER_PARSER_PARSER_H_
#define SATRAP_DATA_LOADER_PARSER_PARSER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "data_loader/parser/record_block.h"
#include "data_loader/source/quoting.h"
#include "proto/data.pb.h"
#include "proto/hot.pb.h"

namespace satrap {

struct ParseResult {
  enum Kind {
    kRecord,   // one row was committed
    kEmpty,    // an empty line: skipped and counted apart
    kComment,  // skipped and counted apart
    kBad,      // nothing was appended; `reason` says why
  };
  Kind kind = kRecord;
  const char* reason = nullptr;  // of a bad record; valid until the parser's next call
};

class Parser {
 public:
  virtual ~Parser() = default;

  // Parses `line`, given without its line end, and appends a row to `block` if it is a good record.
  // REQUIRES: `block` has the format's schema
  ParseResult Parse(absl::string_view line, RecordBlock* block) {
    const ParseResult::Kind kind = KindOf(line);
    if (kind != ParseResult::kRecord) return {kind, nullptr};
    block->BeginRow();
    const char* reason = ParseRow(line, block);
    if (reason != nullptr) {
      block->AbandonRow();
      return {ParseResult::kBad, reason};
    }
    block->CommitRow();
    return {};
  }

  // Whether `line` is empty, a comment, or a record. (Does not say whether the record is good.)
  ParseResult::Kind KindOf(absl::string_view line) const {
    if (line.empty()) return ParseResult::kEmpty;
    if (!comment_prefix_.empty() && absl::StartsWith(line, comment_prefix_)) {
      return ParseResult::kComment;
    }
    return ParseResult::kRecord;
  }

  // Whether the first line of a file that is neither empty nor a comment is a header. If so,
  // CheckHeader checks that line; its INVALID_ARGUMENT says what was expected.
  virtual bool has_header() const { return false; }
  virtual absl::Status CheckHeader(absl::string_view) const { return absl::OkStatus(); }

  // The rules by which a reader of files finds the ends of records that span lines; absent if every
  // line is a record. If present, `line` in the methods above means a whole record.
  virtual absl::optional<QuoteRules> multiline() const { return absl::nullopt; }

 protected:
  // Lines that begin with `comment_prefix` are comments. If it is empty, there are no comments.
  explicit Parser(std::string comment_prefix = "") : comment_prefix_(std::move(comment_prefix)) {}

  // Writes the block's row under construction. Returns null if the record is good; otherwise the
  // reason why it is bad, made by Bad. The caller then abandons the row. REQUIRES: `line` is
  // neither empty nor a comment
  virtual const char* ParseRow(absl::string_view line, RecordBlock* block) = 0;

  // Keeps the reason why a record is bad, and returns it; it is valid until the next call. A reason
  // names the column, shows the column's text (bad_text.h) and says what would be accepted, in
  // printable characters.
  const char* Bad(std::string reason) {
    reason_ = std::move(reason);
    return reason_.c_str();
  }

 private:
  const std::string comment_prefix_;
  std::string reason_;
};

// Makes the parser of the job's format. The test stream may have a vocabulary of its own.
// REQUIRES: a text format
std::unique_ptr<Parser> NewParser(const DataConfig& data, Stream stream);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_PARSER_H_
