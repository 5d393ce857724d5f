#include "nn_worker/graph/parameter_ranges.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/name_pattern.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

// Null if no entry matches.
const ParameterSettings* SettingsOf(const std::string& name, const DenseOptimizerConfig& config) {
  for (const ParameterSettings& settings : config.parameters()) {
    if (MatchesPattern(settings.pattern(), name)) return &settings;
  }
  return nullptr;
}

OptimizerRule WithSettings(OptimizerRule rule, const ParameterSettings& settings) {
  rule.rate_factor = settings.learning_rate_factor();
  if (settings.has_l2()) rule.l2 = settings.l2();
  rule.l1 = settings.l1();
  if (settings.has_weight_decay()) rule.weight_decay = settings.weight_decay();
  return rule;
}

bool HaveEqualSettings(const OptimizerRule& a, const OptimizerRule& b) {
  return a.rate_factor == b.rate_factor && a.l2 == b.l2 && a.l1 == b.l1 &&
         a.weight_decay == b.weight_decay;
}

absl::Status CheckPatterns(const FlatLayout& parameters, const DenseOptimizerConfig& config) {
  const auto& arrays = parameters.arrays;
  for (int i = 0; i < config.parameters_size(); ++i) {
    const std::string& pattern = config.parameters(i).pattern();
    if (std::any_of(arrays.begin(), arrays.end(), [&pattern](const FlatArray& array) {
          return MatchesPattern(pattern, array.name);
        })) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("dense_optimizer.parameters[", i, "].pattern: '", pattern,
                     "' matches no parameter; there are ",
                     absl::StrJoin(arrays, ", ", [](std::string* out, const FlatArray& array) {
                       absl::StrAppend(out, array.name);
                     })));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ParameterRange>> MakeParameterRanges(const FlatLayout& parameters,
                                                                const DenseOptimizerConfig& config,
                                                                const OptimizerRule& rule) {
  RETURN_IF_ERROR(CheckPatterns(parameters, config));
  std::vector<ParameterRange> ranges;
  for (size_t i = 0; i < parameters.arrays.size(); ++i) {
    const FlatArray& array = parameters.arrays[i];
    const int64_t end =
        i + 1 < parameters.arrays.size() ? parameters.arrays[i + 1].begin : parameters.size;
    if (end == array.begin) continue;
    const ParameterSettings* const settings = SettingsOf(array.name, config);
    if (settings != nullptr && settings->frozen()) continue;
    const OptimizerRule own = settings != nullptr ? WithSettings(rule, *settings) : rule;
    if (!ranges.empty() && ranges.back().begin + ranges.back().size == array.begin &&
        HaveEqualSettings(ranges.back().rule, own)) {
      ranges.back().size = end - ranges.back().begin;
    } else {
      ranges.push_back({array.begin, end - array.begin, own});
    }
  }
  return ranges;
}

absl::Status CheckParameterPatterns(const Graph& graph, const DenseOptimizerConfig& config) {
  return CheckPatterns(LayoutParameters(graph, /*backend=*/nullptr), config);
}

}  // namespace satrap
