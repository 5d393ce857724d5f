#include "common/base/near_match.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace satrap {
namespace {

// Levenshtein's distance: letters inserted, removed or replaced.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearMatch(absl::string_view typed, const std::vector<std::string>& candidates) {
  std::string best;
  int best_distance = typed.size() > 7 ? 4 : 3;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(typed, candidate);
    // Without this rule two short words with nothing in common would match.
    if (distance >= static_cast<int>(candidate.size())) continue;
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string DidYouMean(absl::string_view typed, const std::vector<std::string>& candidates,
                       absl::string_view prefix) {
  const std::string near = NearMatch(typed, candidates);
  if (near.empty()) return "";
  return absl::StrCat("; did you mean ", prefix, near, "?");
}

}  // namespace satrap
