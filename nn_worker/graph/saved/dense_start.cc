#include "nn_worker/graph/saved/dense_start.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/warm_start.h"

namespace satrap {
namespace {

// Every whole number up to this is exact as a float.
constexpr int64_t kPart = int64_t{1} << 24;

bool HasShape(const NamedArray& array, const ArrayShape& shape) {
  return array.rows == shape.rows && array.cols == shape.cols;
}

bool IsOfOptimizer(const NamedArray& array) { return absl::StrContains(array.name, '#'); }

absl::StatusOr<DenseStart> DecodeStart(const NamedArray& array) {
  bool whole = array.values.size() == 4;
  for (size_t i = 0; whole && i < array.values.size(); ++i) {
    const float part = array.values[i];
    // The limits keep low + kPart * high from overflowing.
    const auto limit = static_cast<float>(i % 2 == 0 ? kPart : kPart << 13);
    whole = part >= 0 && part < limit && part == std::floor(part);
  }
  if (!whole) {
    return absl::DataLossError(
        absl::StrCat("dense checkpoint: \"", array.name, "\" must be 4 whole numbers"));
  }
  const auto number = [&](size_t at) {
    return static_cast<int64_t>(array.values[at]) +
           kPart * static_cast<int64_t>(array.values[at + 1]);
  };
  return DenseStart{number(0), number(2)};
}

}  // namespace

absl::optional<NamedArray> EncodeStart(const DenseStart& start) {
  if (start.steps_before == 0 && start.warmup_steps == 0) return absl::nullopt;
  NamedArray array{kDenseStartName, 1, 4, {}};
  for (const int64_t number : {start.steps_before, start.warmup_steps}) {
    array.values.push_back(static_cast<float>(number % kPart));
    array.values.push_back(static_cast<float>(number / kPart));
  }
  return array;
}

absl::StatusOr<DenseStart> TakeStart(std::vector<NamedArray>* arrays) {
  const auto found = std::find_if(arrays->begin(), arrays->end(), [](const NamedArray& array) {
    return array.name == kDenseStartName;
  });
  if (found == arrays->end()) return DenseStart();
  const NamedArray array = std::move(*found);
  arrays->erase(found);
  return DecodeStart(array);
}

absl::StatusOr<DenseTake> PlanDenseTake(const WarmStartConfig& config, uint64_t model_step,
                                        absl::Span<const NamedArray> saved,
                                        absl::Span<const ArrayShape> values,
                                        absl::Span<const ArrayShape> states) {
  absl::flat_hash_map<absl::string_view, const NamedArray*> by_name;
  for (const NamedArray& array : saved) by_name[array.name] = &array;
  DenseTake take;
  absl::flat_hash_set<absl::string_view> known;
  for (const ArrayShape& value : values) {
    known.insert(value.name);
    if (!TakesName(config, value.name)) continue;
    const auto found = by_name.find(value.name);
    if (found == by_name.end()) {
      take.fresh.push_back(value.name);
    } else if (!HasShape(*found->second, value)) {
      return absl::FailedPreconditionError(
          absl::StrCat("\"", value.name, "\" is ", found->second->rows, " x ", found->second->cols,
                       " in the model but ", value.rows, " x ", value.cols,
                       " in this job: leave it out of warm_start.only, or rename it in this job"));
    } else {
      take.arrays[value.name] = found->second;
    }
  }
  for (const NamedArray& array : saved) {
    if (!IsOfOptimizer(array) && !known.contains(array.name)) take.ignored.push_back(array.name);
  }
  if (take.arrays.empty()) return take;
  take.has_state = config.optimizer_state() && take.arrays.size() == values.size() &&
                   std::all_of(states.begin(), states.end(), [&](const ArrayShape& state) {
                     const auto found = by_name.find(state.name);
                     return found != by_name.end() && HasShape(*found->second, state);
                   });
  if (!take.has_state) {
    take.start.warmup_steps = config.warmup_steps();
    return take;
  }
  for (const ArrayShape& state : states) take.arrays[state.name] = by_name[state.name];
  take.start.steps_before = static_cast<int64_t>(model_step);
  if (const auto before = by_name.find(kDenseStartName); before != by_name.end()) {
    ASSIGN_OR_RETURN(const DenseStart start, DecodeStart(*before->second));
    take.start.steps_before += start.steps_before;
  }
  return take;
}

}  // namespace satrap
