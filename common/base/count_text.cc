#include "common/base/count_text.h"

#include "absl/strings/str_cat.h"

namespace satrap {

std::string CountText(uint64_t count) {
  std::string text = absl::StrCat(count);
  // Inserts from the end, so that the positions of the remaining commas do not change.
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(at, 1, ',');
  return text;
}

std::string Counted(uint64_t count, absl::string_view one, absl::string_view many) {
  if (count == 1) return absl::StrCat("1 ", one);
  if (!many.empty()) return absl::StrCat(CountText(count), " ", many);
  return absl::StrCat(CountText(count), " ", one, "s");
}

}  // namespace satrap
