#include "data_loader/source/quoting.h"

#include <cstddef>
#include <cstring>

namespace satrap {
namespace {

// The first `wanted` in [from, end), or `end`.
const char* Find(const char* from, const char* end, char wanted) {
  if (from == end) return end;
  const void* found = std::memchr(from, wanted, static_cast<size_t>(end - from));
  return found == nullptr ? end : static_cast<const char*>(found);
}

absl::string_view View(const char* from, const char* end) {
  return absl::string_view(from, static_cast<size_t>(end - from));
}

}  // namespace

bool RecordEndFinder::EndsWithinQuotes(absl::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  while (at != end) {
    switch (state_) {
      case State::kFieldStart:
        if (*at == '"') {
          state_ = State::kQuoted;
          ++at;
        } else if (*at == rules_->separator || rules_->IsSpace(*at)) {
          ++at;
        } else {
          state_ = State::kUnquoted;
        }
        break;
      case State::kUnquoted:
        at = Find(at, end, rules_->separator);
        if (at != end) {
          state_ = State::kFieldStart;
          ++at;
        }
        break;
      case State::kQuoted:
        at = Find(at, end, '"');
        if (at != end) {
          state_ = State::kQuoteInQuoted;
          ++at;
        }
        break;
      case State::kQuoteInQuoted:
        // Two quotes in a row mean a quote in the field. Any other byte comes after the field, and
        // the state kUnquoted then finds the separator.
        if (*at == '"') {
          state_ = State::kQuoted;
          ++at;
        } else {
          state_ = State::kUnquoted;
        }
        break;
    }
  }
  return state_ == State::kQuoted;
}

QuotedFields::Result QuotedFields::Next(absl::string_view* field) {
  const char* from = at_;
  while (from != end_ && rules_->IsSpace(*from)) ++from;
  if (from != end_ && *from == '"') return NextQuoted(from + 1, field);

  const char* const separator = Find(from, end_, rules_->separator);
  const char* field_end = separator;
  while (field_end != from && rules_->IsSpace(field_end[-1])) --field_end;
  *field = View(from, field_end);
  done_ = separator == end_;
  if (!done_) at_ = separator + 1;
  return Result::kField;
}

QuotedFields::Result QuotedFields::NextQuoted(const char* from, absl::string_view* field) {
  // Nearly all fields have no doubled quotes and are returned in place.
  bool copied = false;
  const char* quote = Find(from, end_, '"');
  while (quote != end_ && quote + 1 != end_ && quote[1] == '"') {
    if (!copied) scratch_->clear();
    copied = true;
    scratch_->append(from, static_cast<size_t>(quote + 1 - from));
    from = quote + 2;
    quote = Find(from, end_, '"');
  }
  if (quote == end_) return Result::kNotClosed;
  *field = View(from, quote);
  if (copied) {
    scratch_->append(from, static_cast<size_t>(quote - from));
    *field = *scratch_;
  }

  const char* after = quote + 1;
  while (after != end_ && rules_->IsSpace(*after)) ++after;
  done_ = after == end_;
  if (done_) return Result::kField;
  if (*after != rules_->separator) return Result::kTextAfterQuote;
  at_ = after + 1;
  return Result::kField;
}

}  // namespace satrap
