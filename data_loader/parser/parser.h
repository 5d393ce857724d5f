// A Parser turns one line of a text format into one row of a RecordBlock. What a bad record is
// belongs to the format and stands in docs/formats.md.
//
// Ids: the strings of ID, MULTI_ID and GROUP columns become XXH64 of their bytes, digits included;
// with a vocabulary an id is the position in it. The indices of libsvm and libffm are numbers and
// become their value.
//
// A format writes one row in ParseRow; what every format does around it is here.
//
// A parser may keep scratch memory: one object a thread.

#ifndef SATRAP_DATA_LOADER_PARSER_PARSER_H_
#define SATRAP_DATA_LOADER_PARSER_PARSER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "data_loader/parser/record_block.h"
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
  const char* reason = nullptr;  // lives for the whole program
};

inline ParseResult BadRecord(const char* reason) { return {ParseResult::kBad, reason}; }

class Parser {
 public:
  virtual ~Parser() = default;

  // Parses `line`, without its end of line. REQUIRES: `block` has the format's schema
  ParseResult Parse(absl::string_view line, RecordBlock* block) {
    if (line.empty()) return {ParseResult::kEmpty, nullptr};
    if (!comment_prefix_.empty() && absl::StartsWith(line, comment_prefix_)) {
      return {ParseResult::kComment, nullptr};
    }
    block->BeginRow();
    const char* reason = ParseRow(line, block);
    if (reason != nullptr) {
      block->AbandonRow();
      return BadRecord(reason);
    }
    block->CommitRow();
    return {};
  }

  // Whether a file's first line is a header, and then whether `line` is the right one:
  // INVALID_ARGUMENT says what was expected.
  virtual bool has_header() const { return false; }
  virtual absl::Status CheckHeader(absl::string_view) const { return absl::OkStatus(); }

 protected:
  // Lines that begin with `comment_prefix` are comments; if it is empty, none is.
  explicit Parser(std::string comment_prefix = "") : comment_prefix_(std::move(comment_prefix)) {}

  // Writes the block's row under construction: null if the record is good, else the reason why it
  // is bad, a string literal; what was written of the row then counts for nothing.
  // REQUIRES: `line` is neither empty nor a comment
  virtual const char* ParseRow(absl::string_view line, RecordBlock* block) = 0;

 private:
  const std::string comment_prefix_;
};

// The parser of the job's format. `stream` chooses between vocabularies.
// REQUIRES: a text format
std::unique_ptr<Parser> NewParser(const DataConfig& data, Stream stream);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_PARSER_H_
