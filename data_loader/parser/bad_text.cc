#include "data_loader/parser/bad_text.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace satrap {
namespace {

constexpr size_t kMaxShownBytes = 40;
constexpr size_t kMaxShownTexts = 3;

}  // namespace

std::string ShownText(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMaxShownBytes)),
                      text.size() > kMaxShownBytes ? "...'" : "'");
}

std::string ShownTexts(const std::vector<std::string>& texts) {
  std::string shown;
  for (size_t i = 0; i < std::min(texts.size(), kMaxShownTexts); ++i) {
    absl::StrAppend(&shown, i == 0 ? "" : ", ", ShownText(texts[i]));
  }
  if (texts.size() > kMaxShownTexts) {
    absl::StrAppend(&shown, " and ", texts.size() - kMaxShownTexts, " more");
  }
  return shown;
}

std::string ColumnHolds(absl::string_view column, absl::string_view text) {
  return absl::StrCat("column ", ShownText(column), " holds ", ShownText(text));
}

std::string LineTooLong(absl::string_view line) {
  return absl::StrCat("a line over 1 MiB, which begins with ", ShownText(line),
                      "; a line ends with a line feed");
}

}  // namespace satrap
