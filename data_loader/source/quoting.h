// Quoted fields of a CSV file (RFC 4180): `"` encloses a field that may hold separators, line ends
// and quotes, each of which is written twice.
//
// A field is quoted if its first byte is a quote; with `trim`, spaces and tabs may come before it
// and after the closing quote. A quote anywhere else in a field is a byte like any other.
//
// Two classes read by this one grammar: RecordEndFinder says where a record that may span lines
// ends, QuotedFields gives the fields of a record.

#ifndef SATRAP_DATA_LOADER_SOURCE_QUOTING_H_
#define SATRAP_DATA_LOADER_SOURCE_QUOTING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace satrap {

struct QuoteRules {
  char separator = ',';
  bool trim = false;
  // A record that begins with this is a comment, which is one line even if it holds quotes. Empty:
  // there are no comments.
  std::string comment_prefix;

  // Bytes that `trim` removes: never the separator, which may be a tab.
  bool IsSpace(char c) const { return trim && (c == ' ' || c == '\t') && c != separator; }
};

// Reads one record, line by line, as far as is needed to tell whether a line end is within quotes.
class RecordEndFinder {
 public:
  // `rules` must outlive the object.
  explicit RecordEndFinder(const QuoteRules* rules) : rules_(rules) {}

  // Reads the next bytes of the record, line ends included or not. True if they end within quotes,
  // so that a line end that follows belongs to the record.
  bool EndsWithinQuotes(absl::string_view bytes);

 private:
  enum class State {
    kFieldStart,
    kUnquoted,  // also after a closing quote, up to the separator
    kQuoted,
    kQuoteInQuoted,  // the next byte decides between a doubled quote and the end of the field
  };
  const QuoteRules* const rules_;
  State state_ = State::kFieldStart;
};

// The fields of one record, one after another. Holds no memory of its own.
class QuotedFields {
 public:
  // `rules`, `scratch` and the bytes of `record` must outlive the object. `scratch` receives fields
  // that are not contiguous in the record, because they hold doubled quotes.
  QuotedFields(absl::string_view record, const QuoteRules* rules, std::string* scratch)
      : at_(record.data()), end_(record.data() + record.size()), rules_(rules), scratch_(scratch) {}

  // True once the last field was given. A record has at least one field, which may be empty.
  bool done() const { return done_; }
  // What is not read yet, from the next field on or from the field that could not be given.
  absl::string_view rest() const { return absl::string_view(at_, static_cast<size_t>(end_ - at_)); }

  enum class Result {
    kField,
    kNotClosed,       // a quoted field reaches the end of the record
    kTextAfterQuote,  // neither a separator nor the end follows a closing quote
  };
  // Gives the next field without its quotes; trimmed if the rules say so and it is not quoted.
  // `field` is valid until the next call. REQUIRES: !done(), and every call so far gave a field
  Result Next(absl::string_view* field);

 private:
  Result NextQuoted(const char* from, absl::string_view* field);

  const char* at_;
  const char* const end_;
  const QuoteRules* const rules_;
  std::string* const scratch_;
  bool done_ = false;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_QUOTING_H_
