#include "deploy/retrieve/text_lines.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"

namespace satrap {
namespace {

// Quote only this much, because a field of a file that is not text may be very long.
constexpr size_t kMaxQuotedBytes = 40;

std::string Quoted(absl::string_view field) {
  return absl::StrCat("'", absl::CHexEscape(field.substr(0, kMaxQuotedBytes)),
                      field.size() > kMaxQuotedBytes ? "...'" : "'");
}

}  // namespace

absl::StatusOr<TextLines> TextLines::Open(const std::string& path) {
  std::error_code error;
  // Check this here, because a folder can be opened like a file.
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": it is a folder"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return FileError("read", path);
  return TextLines(path, std::move(file));
}

absl::StatusOr<bool> TextLines::Next(std::string* line) {
  if (!std::getline(file_, *line)) {
    if (file_.bad()) return FileError("read", path_);
    return false;
  }
  ++line_;
  if (!line->empty() && line->back() == '\r') line->pop_back();
  return true;
}

absl::Status TextLines::Error(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ":", line_, ": ", what));
}

std::vector<absl::string_view> FieldsOf(absl::string_view line) {
  if (absl::StrContains(line, '\t')) return absl::StrSplit(line, '\t');
  return absl::StrSplit(line, ' ', absl::SkipEmpty());
}

absl::StatusOr<bool> NextPair(TextLines* lines, NamePair* pair) {
  std::string line;
  do {
    ASSIGN_OR_RETURN(const bool more, lines->Next(&line));
    if (!more) return false;
  } while (line.empty());
  const std::vector<absl::string_view> fields = FieldsOf(line);
  if (fields.size() < 2) {
    return lines->Error("must have a user and an item, separated by a tab or a blank");
  }
  pair->user = std::string(fields[0]);
  pair->item = std::string(fields[1]);
  return true;
}

absl::StatusOr<bool> NextVector(TextLines* lines, int64_t* dim, std::vector<float>* values) {
  std::string line;
  ASSIGN_OR_RETURN(const bool more, lines->Next(&line));
  if (!more) return false;
  values->clear();
  for (const absl::string_view field :
       absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty())) {
    float value = 0;
    if (!absl::SimpleAtof(field, &value) || std::isinf(value)) {
      return lines->Error(absl::StrCat(Quoted(field), " is not a finite number"));
    }
    values->push_back(value);
  }
  const auto count = static_cast<int64_t>(values->size());
  if (count == 0) return lines->Error("is empty, expected a vector");
  const auto bad =
      std::count_if(values->begin(), values->end(), [](float v) { return std::isnan(v); });
  if (bad > 0 && bad < count) return lines->Error("some values are nan, and others are not");
  // A line of nan counts, too: a file may begin with a bad record, whose line has as many values as
  // the others.
  if (*dim == 0) *dim = count;
  if (count != *dim) {
    return lines->Error(
        absl::StrCat("has ", Counted(static_cast<uint64_t>(count), "value"), ", expected ", *dim));
  }
  if (bad > 0) values->clear();
  return true;
}

}  // namespace satrap
