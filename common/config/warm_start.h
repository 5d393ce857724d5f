// The names in WarmStartConfig.only: which tables and dense parameters a run takes from the model
// that it starts from.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_WARM_START_H_
#define SATRAP_COMMON_CONFIG_WARM_START_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace satrap {

// Whether a run may take the table or parameter of this name: true if the name matches a pattern,
// or if there are no patterns.
bool TakesName(const WarmStartConfig& config, absl::string_view name);

// INVALID_ARGUMENT, naming the pattern and `model`, for the first pattern that matches none of
// `names`. REQUIRES: `names` has the names of the job and those of the model
absl::Status CheckPatterns(const WarmStartConfig& config, const std::vector<std::string>& names,
                           absl::string_view model);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_WARM_START_H_
