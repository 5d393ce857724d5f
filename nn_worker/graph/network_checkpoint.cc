#include "nn_worker/graph/network_checkpoint.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {

void AppendKept(const FlatLayout& layout, const Tensor& buffer, absl::string_view suffix,
                std::vector<KeptArray>* kept) {
  for (const FlatArray& array : layout.arrays) {
    kept->push_back({absl::StrCat(array.name, suffix), ViewOf(array, buffer)});
  }
}

std::vector<NamedArray> ReadKept(const std::vector<KeptArray>& kept, Backend* backend) {
  std::vector<NamedArray> arrays;
  for (const KeptArray& array : kept) {
    const Tensor& values = array.values;
    NamedArray& copy = arrays.emplace_back(NamedArray{array.name, values.rows, values.cols, {}});
    copy.values.resize(values.rows * values.cols);
    CopyOut(backend, values, absl::MakeSpan(copy.values));
  }
  backend->Sync();
  return arrays;
}

bool IsAverage(const NamedArray& array) { return absl::EndsWith(array.name, kAverageSuffix); }

bool IsOptimizerState(const NamedArray& array) {
  return absl::StrContains(array.name, '#') && !IsAverage(array);
}

absl::Status CheckOptimizerKind(const std::vector<NamedArray>& arrays,
                                const DenseOptimizer& optimizer) {
  const std::string saved = OptimizerKindOf(arrays), own = optimizer.state_kind();
  if (saved == own) return absl::OkStatus();
  const auto name = [](const std::string& kind) { return kind.empty() ? "no optimizer" : kind; };
  return absl::FailedPreconditionError(
      absl::StrCat("dense checkpoint holds the state of ", name(saved),
                   ", but this job's dense_optimizer needs that of ", name(own)));
}

absl::StatusOr<std::vector<ArrayCopy>> MatchArrays(const std::vector<const NamedArray*>& saved,
                                                   const std::vector<KeptArray>& kept) {
  absl::flat_hash_map<absl::string_view, const NamedArray*> by_name;
  for (const NamedArray* array : saved) by_name[array->name] = array;
  std::vector<ArrayCopy> copies;
  for (const KeptArray& own : kept) {
    const auto found = by_name.find(own.name);
    if (found == by_name.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("dense checkpoint has no \"", own.name, "\", which this model needs"));
    }
    const NamedArray& array = *found->second;
    if (array.rows != own.values.rows || array.cols != own.values.cols) {
      return absl::FailedPreconditionError(
          absl::StrCat("dense checkpoint: \"", own.name, "\" is ", array.rows, " x ", array.cols,
                       ", but this model needs ", own.values.rows, " x ", own.values.cols));
    }
    copies.push_back({&array, own.values});
    by_name.erase(found);
  }
  for (const NamedArray* array : saved) {
    if (!by_name.contains(array->name)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("dense checkpoint has \"", array->name, "\", which this model does not have"));
  }
  return copies;
}

}  // namespace satrap
