// Patterns that name several parameters or tables at once: '*' matches any number of characters,
// '?' matches one, and every other character matches itself.

#ifndef SATRAP_COMMON_BASE_NAME_PATTERN_H_
#define SATRAP_COMMON_BASE_NAME_PATTERN_H_

#include "absl/strings/string_view.h"

namespace satrap {

// Whether `pattern` matches all of `name`. It takes at most pattern.size() * name.size() steps.
bool MatchesPattern(absl::string_view pattern, absl::string_view name);

}  // namespace satrap

#endif  // SATRAP_COMMON_BASE_NAME_PATTERN_H_
