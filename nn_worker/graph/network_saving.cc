#include "nn_worker/graph/network_saving.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/graph/network_checkpoint.h"

namespace satrap {

std::string SaveParts(const SavedParts& parts) {
  NetworkValues& values = *parts.values;
  values.ShowAverages(false);
  std::vector<KeptArray> kept = values.Kept(values.averages.has_value());
  parts.training->AppendState(&kept);
  std::vector<NamedArray> arrays = ReadKept(kept, values.backend);
  if (absl::optional<NamedArray> start = EncodeStart(parts.training->start()); start.has_value()) {
    arrays.push_back(*std::move(start));
  }
  return EncodeArrays(arrays);
}

absl::Status LoadParts(absl::string_view bytes, LoadScope scope, const SavedParts& parts) {
  NetworkValues& values = *parts.values;
  ASSIGN_OR_RETURN(std::vector<NamedArray> arrays, DecodeArrays(bytes));
  ASSIGN_OR_RETURN(const DenseStart start, TakeStart(&arrays));
  const bool all = scope == LoadScope::kAll;
  CHECK(!all || parts.options.trains) << "a network that is not trained has no optimizer's state";
  const bool averages = values.averages.has_value();
  // For a model that was trained without averages, its parameters serve as the averages.
  const bool loads_averages =
      averages && (all || std::any_of(arrays.begin(), arrays.end(), IsAverage));
  std::vector<const NamedArray*> saved;
  for (const NamedArray& array : arrays) {
    // If only the model is loaded, two kinds of arrays are ignored: optimizer state, which may
    // belong to another optimizer, and averages that nothing here reads.
    if (!all && (IsOptimizerState(array) || (IsAverage(array) && !averages))) continue;
    saved.push_back(&array);
  }
  std::vector<KeptArray> kept = values.Kept(loads_averages);
  if (all) {
    // A network without parameters, such as one that only multiplies embeddings, has no state of
    // any kind.
    if (!values.parameter_layout.arrays.empty()) {
      RETURN_IF_ERROR(CheckOptimizerKind(arrays, parts.training->optimizer()));
    }
    parts.training->AppendState(&kept);
  }
  if (!parts.options.outputs.empty()) {
    absl::flat_hash_set<absl::string_view> needed;
    for (const KeptArray& array : kept) needed.insert(array.name);
    saved.erase(
        std::remove_if(saved.begin(), saved.end(),
                       [&](const NamedArray* array) { return !needed.contains(array->name); }),
        saved.end());
  }
  // A checkpoint that does not fit must change nothing.
  ASSIGN_OR_RETURN(const std::vector<ArrayCopy> copies, MatchArrays(saved, kept));
  values.ShowAverages(false);
  if (all) parts.training->set_start(start);
  for (const ArrayCopy& copy : copies) CopyIn(values.backend, copy.from->values, copy.to);
  if (averages && !loads_averages) values.averages->Reset();
  values.RefreshCopies();
  return absl::OkStatus();
}

absl::StatusOr<TakenOfModel> StartPartsFrom(absl::string_view bytes, const WarmStartConfig& config,
                                            uint64_t model_step, const SavedParts& parts) {
  ASSIGN_OR_RETURN(const std::vector<NamedArray> saved, DecodeArrays(bytes));
  const auto shapes = [](const std::vector<KeptArray>& arrays) {
    std::vector<ArrayShape> shapes;
    for (const KeptArray& array : arrays) {
      shapes.push_back({array.name, array.values.rows, array.values.cols});
    }
    return shapes;
  };
  std::vector<KeptArray> kept = parts.values->Kept(/*with_averages=*/false), states;
  parts.training->AppendState(&states);
  ASSIGN_OR_RETURN(DenseTake take,
                   PlanDenseTake(config, model_step, saved, shapes(kept), shapes(states)));
  TakenOfModel taken{{}, std::move(take.fresh), std::move(take.ignored), take.has_state};
  parts.values->ShowAverages(false);
  for (const KeptArray& array : kept) {
    if (take.arrays.contains(array.name)) taken.taken.push_back(array.name);
  }
  kept.insert(kept.end(), states.begin(), states.end());
  for (const KeptArray& array : kept) {
    const auto found = take.arrays.find(array.name);
    if (found != take.arrays.end())
      CopyIn(parts.values->backend, found->second->values, array.values);
  }
  parts.training->set_start(take.start);
  if (parts.values->averages.has_value()) parts.values->averages->Reset();
  parts.values->RefreshCopies();
  return taken;
}

}  // namespace satrap
