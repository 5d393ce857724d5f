// Quoted fields of a CSV file (RFC 4180): `"` encloses a field that may contain separators, line
// ends and quotes; each quote in it is written twice.
//
// A field is quoted if its first byte is a quote. With `trim`, there may be spaces and tabs before
// that quote and after the closing quote. Elsewhere in a field, a quote is an ordinary byte.
//
// Two classes read by this grammar: RecordEndFinder finds the end of a record that may span lines,
// and QuotedFields returns the fields of a record.

#ifndef SATRAP_DATA_LOADER_SOURCE_QUOTING_H_
#define SATRAP_DATA_LOADER_SOURCE_QUOTING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace satrap {

struct QuoteRules {
  char separator = ',';
  bool trim = false;
  // A record that begins with this is a comment, which is always one line, even if it contains
  // quotes. Empty: there are no comments.
  std::string comment_prefix;

  // Whether `trim` removes this byte. It never removes the separator, which may be a tab.
  bool IsSpace(char c) const { return trim && (c == ' ' || c == '\t') && c != separator; }
};

// Reads one record, line by line, in order to tell whether a line end is within quotes.
class RecordEndFinder {
 public:
  // `rules` must outlive the object.
  explicit RecordEndFinder(const QuoteRules* rules) : rules_(rules) {}

  // Reads the next bytes of the record, with or without line ends. Returns whether they end within
  // quotes, so that a line end after them belongs to the record.
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

// Returns the fields of one record, one after another. Owns no memory.
class QuotedFields {
 public:
  // `rules`, `scratch` and the bytes of `record` must outlive this object. Fields that contain
  // doubled quotes are not contiguous in the record, so they are copied to `scratch`.
  QuotedFields(absl::string_view record, const QuoteRules* rules, std::string* scratch)
      : at_(record.data()), end_(record.data() + record.size()), rules_(rules), scratch_(scratch) {}

  // Whether the last field was returned. A record has at least one field, which may be empty.
  bool done() const { return done_; }
  // The unread part of the record. It begins at the next field, or at the field that Next failed to
  // return.
  absl::string_view rest() const { return absl::string_view(at_, static_cast<size_t>(end_ - at_)); }

  enum class Result {
    kField,
    kNotClosed,       // a quoted field reaches the end of the record
    kTextAfterQuote,  // neither a separator nor the end follows a closing quote
  };
  // Returns the next field. A quoted field is returned without its quotes, and a field that is not
  // quoted is trimmed if the rules say so. `field` is valid until the next call. REQUIRES: !done(),
  // and every call so far returned a field
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
