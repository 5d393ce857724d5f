#include "common/config/kubernetes_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace satrap {
namespace {

bool IsLowerAlnum(char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); }

}  // namespace

bool IsDnsLabel(absl::string_view name) {
  return !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsLowerAlnum(c) || c == '-'; });
}

bool IsRunName(absl::string_view name) {
  return IsDnsLabel(name) && name.size() <= kLongestRunName && absl::ascii_islower(name.front()) &&
         !absl::EndsWith(name, "-members");
}

bool IsObjectName(absl::string_view name) {
  if (name.size() > 253) return false;
  for (const absl::string_view label : absl::StrSplit(name, '.')) {
    // Only the length of the whole name is limited, not that of a label.
    if (label.empty() || !IsDnsLabel(label.substr(0, 1)) ||
        !IsDnsLabel(label.substr(label.size() - 1)) ||
        !std::all_of(label.begin(), label.end(),
                     [](char c) { return IsLowerAlnum(c) || c == '-'; })) {
      return false;
    }
  }
  return true;
}

bool IsLabelValue(absl::string_view value) {
  if (value.empty()) return true;
  return value.size() <= 63 && absl::ascii_isalnum(value.front()) &&
         absl::ascii_isalnum(value.back()) && std::all_of(value.begin(), value.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

bool IsLabelKey(absl::string_view key) {
  const size_t slash = key.find('/');
  if (slash != key.npos) {
    if (!IsObjectName(key.substr(0, slash))) return false;
    key.remove_prefix(slash + 1);
  }
  return !key.empty() && IsLabelValue(key);
}

}  // namespace satrap
