// Suggests which of the existing names a user probably meant by a name that does not exist.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_BASE_NEAR_MATCH_H_
#define SATRAP_COMMON_BASE_NEAR_MATCH_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace satrap {

// The candidate nearest to `typed`, at most two edits away, or three if `typed` has more than seven
// letters. If several are equally near, the first of them; if none is near enough, empty.
std::string NearMatch(absl::string_view typed, const std::vector<std::string>& candidates);

// The end of a message: "; did you mean PREFIXx?" for the near match x, or the empty string.
std::string DidYouMean(absl::string_view typed, const std::vector<std::string>& candidates,
                       absl::string_view prefix = "");

}  // namespace satrap

#endif  // SATRAP_COMMON_BASE_NEAR_MATCH_H_
