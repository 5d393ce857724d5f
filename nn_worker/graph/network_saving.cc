// The part of Network that names, saves and loads what it consists of.

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/graph/network_checkpoint.h"
#include "nn_worker/graph/network_rep.h"

namespace satrap {

int64_t Network::num_parameters() const {
  int64_t count = 0;
  for (const FlatArray& array : rep_->parameter_layout.arrays) {
    count += array.spec.rows * array.spec.cols;
  }
  return count;
}

std::vector<std::string> Network::parameter_names() const {
  std::vector<std::string> names;
  for (const FlatArray& array : rep_->parameter_layout.arrays) names.push_back(array.name);
  return names;
}

std::vector<std::string> Network::value_names() const {
  std::vector<std::string> names = parameter_names();
  for (const FlatArray& array : rep_->state_layout.arrays) names.push_back(array.name);
  return names;
}

absl::StatusOr<NamedArray> Network::Parameter(absl::string_view name) {
  rep_->ShowAverages(false);
  for (const FlatArray& array : rep_->parameter_layout.arrays) {
    if (array.name != name) continue;
    return ReadKept({{array.name, ViewOf(array, rep_->parameters)}}, rep_->backend)[0];
  }
  return absl::NotFoundError(absl::StrCat("no parameter \"", name, "\""));
}

std::string Network::Save() {
  rep_->ShowAverages(false);
  std::vector<KeptArray> kept = rep_->KeptModel(rep_->averages.has_value());
  rep_->AppendOptimizerState(&kept);
  std::vector<NamedArray> arrays = ReadKept(kept, rep_->backend);
  if (absl::optional<NamedArray> start = EncodeStart(rep_->start); start.has_value()) {
    arrays.push_back(*std::move(start));
  }
  return EncodeArrays(arrays);
}

absl::Status Network::Load(absl::string_view bytes, LoadScope scope) {
  ASSIGN_OR_RETURN(std::vector<NamedArray> arrays, DecodeArrays(bytes));
  ASSIGN_OR_RETURN(const DenseStart start, TakeStart(&arrays));
  const bool all = scope == LoadScope::kAll;
  CHECK(!all || rep_->options.trains) << "a network that is not trained has no optimizer's state";
  const bool averages = rep_->averages.has_value();
  // A model that was trained without averages is its own average.
  const bool loads_averages =
      averages && (all || std::any_of(arrays.begin(), arrays.end(), IsAverage));
  std::vector<const NamedArray*> saved;
  for (const NamedArray& array : arrays) {
    // To load only the model, ignore optimizer state, which may be of another optimizer, and
    // averages that nothing here reads.
    if (!all && (IsOptimizerState(array) || (IsAverage(array) && !averages))) continue;
    saved.push_back(&array);
  }
  std::vector<KeptArray> kept = rep_->KeptModel(loads_averages);
  if (all) {
    // A network without parameters, as of products of embeddings, has no state of any kind.
    if (!rep_->parameter_layout.arrays.empty()) {
      RETURN_IF_ERROR(CheckOptimizerKind(arrays, rep_->optimizer));
    }
    rep_->AppendOptimizerState(&kept);
  }
  if (!rep_->options.outputs.empty()) {
    absl::flat_hash_set<absl::string_view> needed;
    for (const KeptArray& array : kept) needed.insert(array.name);
    saved.erase(
        std::remove_if(saved.begin(), saved.end(),
                       [&](const NamedArray* array) { return !needed.contains(array->name); }),
        saved.end());
  }
  // A checkpoint that does not fit must change nothing.
  ASSIGN_OR_RETURN(const std::vector<ArrayCopy> copies, MatchArrays(saved, kept));
  rep_->ShowAverages(false);
  if (all) rep_->start = start;
  for (const ArrayCopy& copy : copies) CopyIn(rep_->backend, copy.from->values, copy.to);
  if (averages && !loads_averages) rep_->averages->Reset();
  rep_->RefreshCopies();
  return absl::OkStatus();
}

absl::StatusOr<Network::Taken> Network::StartFrom(absl::string_view bytes,
                                                  const WarmStartConfig& config,
                                                  uint64_t model_step) {
  ASSIGN_OR_RETURN(const std::vector<NamedArray> saved, DecodeArrays(bytes));
  const auto shapes = [](const std::vector<KeptArray>& kept) {
    std::vector<ArrayShape> shapes;
    for (const KeptArray& array : kept) {
      shapes.push_back({array.name, array.values.rows, array.values.cols});
    }
    return shapes;
  };
  std::vector<KeptArray> values = rep_->KeptModel(/*with_averages=*/false), states;
  rep_->AppendOptimizerState(&states);
  ASSIGN_OR_RETURN(DenseTake take,
                   PlanDenseTake(config, model_step, saved, shapes(values), shapes(states)));
  Taken taken{{}, std::move(take.fresh), std::move(take.ignored), take.has_state};
  rep_->ShowAverages(false);
  for (const KeptArray& array : values) {
    if (take.arrays.contains(array.name)) taken.taken.push_back(array.name);
  }
  values.insert(values.end(), states.begin(), states.end());
  for (const KeptArray& array : values) {
    const auto found = take.arrays.find(array.name);
    if (found != take.arrays.end()) CopyIn(rep_->backend, found->second->values, array.values);
  }
  rep_->start = take.start;
  if (rep_->averages.has_value()) rep_->averages->Reset();
  rep_->RefreshCopies();
  return taken;
}

}  // namespace satrap
