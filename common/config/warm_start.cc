#include "common/config/warm_start.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/name_pattern.h"

namespace satrap {

bool TakesName(const WarmStartConfig& config, absl::string_view name) {
  return config.only_size() == 0 ||
         std::any_of(config.only().begin(), config.only().end(),
                     [name](const std::string& pattern) { return MatchesPattern(pattern, name); });
}

absl::Status CheckPatterns(const WarmStartConfig& config, const std::vector<std::string>& names,
                           absl::string_view model) {
  for (int i = 0; i < config.only_size(); ++i) {
    const std::string& pattern = config.only(i);
    if (std::any_of(names.begin(), names.end(),
                    [&](const std::string& name) { return MatchesPattern(pattern, name); })) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("warm_start.only[", i, "]: '", pattern,
                     "' matches no table and no dense parameter, neither of the job nor of the "
                     "model in ",
                     model));
  }
  return absl::OkStatus();
}

}  // namespace satrap
