// Copies between the buffers of a Network and the arrays of dense_checkpoint.h.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_GRAPH_NETWORK_CHECKPOINT_H_
#define SATRAP_NN_WORKER_GRAPH_NETWORK_CHECKPOINT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/graph/network_memory.h"
#include "nn_worker/graph/saved/dense_checkpoint.h"
#include "nn_worker/optimizer/dense_optimizer.h"

namespace satrap {

// An array that a network saves and loads.
struct KeptArray {
  std::string name;  // in the checkpoint
  Tensor values;
};

// Appends the arrays of `layout` in `buffer` to `kept`. Each keeps its name, followed by `suffix`,
// which is "", kAverageSuffix, or "#" and the name of a state of the optimizer, such as "#adam.m".
inline constexpr absl::string_view kAverageSuffix = "#average";
void AppendKept(const FlatLayout& layout, const Tensor& buffer, absl::string_view suffix,
                std::vector<KeptArray>* kept);

// Copies of all values. Waits for the backend.
std::vector<NamedArray> ReadKept(const std::vector<KeptArray>& kept, Backend* backend);

bool IsAverage(const NamedArray& array);
bool IsOptimizerState(const NamedArray& array);

// FAILED_PRECONDITION unless the optimizer state among `arrays` is of the kind of `optimizer`.
absl::Status CheckOptimizerKind(const std::vector<NamedArray>& arrays,
                                const DenseOptimizer& optimizer);

// One copy that loads an array of `saved`; points into `saved`. MatchArrays returns
// FAILED_PRECONDITION, naming an array, unless names and shapes are those of `kept`.
struct ArrayCopy {
  const NamedArray* from = nullptr;
  Tensor to;
};
absl::StatusOr<std::vector<ArrayCopy>> MatchArrays(const std::vector<const NamedArray*>& saved,
                                                   const std::vector<KeptArray>& kept);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_NETWORK_CHECKPOINT_H_
