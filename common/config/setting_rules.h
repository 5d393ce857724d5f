// The rules between the fields of a table, an initializer or an optimizer. The validator checks
// whole jobs with these functions, and the factories check their arguments with them, so the two
// never disagree. The ranges of single fields are options of the fields (setting_ranges.h).
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_SETTING_RULES_H_
#define SATRAP_COMMON_CONFIG_SETTING_RULES_H_

#include <string>

#include "absl/status/status.h"
#include "common/base/problems.h"
#include "common/config/setting_ranges.h"
#include "proto/model.pb.h"
#include "proto/table.pb.h"

namespace satrap {

// Each function adds a problem for every rule that is broken, also in submessages. `prefix` begins
// the path of each field: "" or "tables[0].segments[1].optimizer.", for example.
void CheckRules(const TableConfig& table, const std::string& prefix, Problems* problems);
void CheckRules(const InitializerConfig& initializer, const std::string& prefix,
                Problems* problems);
void CheckRules(const SparseOptimizerConfig& optimizer, const std::string& prefix,
                Problems* problems);
void CheckRules(const DenseOptimizerConfig& optimizer, const std::string& prefix,
                Problems* problems);

// For factories: OK, or INVALID_ARGUMENT with the first field that is out of range or the first
// rule that is broken.
template <typename Config>
absl::Status CheckConfig(const Config& config, const std::string& prefix) {
  Problems problems;
  CheckRanges(config, prefix, &problems);
  CheckRules(config, prefix, &problems);
  return problems.First();
}

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_SETTING_RULES_H_
