#include "data_loader/parser/tokens.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "data_loader/parser/bad_text.h"
#include "data_loader/parser/number.h"

namespace satrap {

TokenLabels::TokenLabels(std::string format, bool numeric_label,
                         const google::protobuf::RepeatedField<float>& classes, RecordRules rules)
    : format_(std::move(format)),
      numeric_(numeric_label),
      any_spelling_(numeric_label || !classes.empty() || rules == RecordRules::kNewest) {
  for (const float name : classes) {
    classes_.emplace(name, static_cast<float>(class_names_.size()));
    class_names_.push_back(absl::StrCat(name));
  }
}

bool TokenLabels::Read(absl::string_view token, float* label) const {
  if (!numeric_ && classes_.empty()) {
    if (token == "1" || token == "+1") {
      *label = 1;
      return true;
    }
    if (token == "0" || token == "-1") {
      *label = 0;
      return true;
    }
  }
  return any_spelling_ && ReadAnySpelling(token, label);
}

bool TokenLabels::ReadAnySpelling(absl::string_view token, float* label) const {
  float number;
  if (!ParseNumber(token, true, &number)) return false;
  if (numeric_) {
    *label = number;
    return true;
  }
  if (!classes_.empty()) {
    const auto at = classes_.find(number);
    if (at == classes_.end()) return false;
    *label = at->second;
    return true;
  }
  *label = number == 1 ? 1.0f : 0.0f;
  return number == 1 || number == 0 || number == -1;
}

std::string TokenLabels::BadLabel(absl::string_view token) const {
  const std::string where =
      absl::StrCat("expected a label at the beginning of the line, got ",
                   token.empty() ? "nothing" : ShownText(token), "; valid labels: ");
  if (numeric_) return absl::StrCat(where, "numbers (", format_, ".numeric_label)");
  if (!classes_.empty()) {
    return absl::StrCat(where, ShownTexts(class_names_), " (", format_, ".classes)");
  }
  return absl::StrCat(where, "1 (positive), 0 and -1 (negative); for other numbers, set ", format_,
                      ".numeric_label or ", format_, ".classes");
}

}  // namespace satrap
