// Decides what a run takes from the dense network of the model that it starts from (WarmStartConfig
// in proto/job.proto), and defines the form in which the run's own cuts save its DenseStart.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_GRAPH_SAVED_DENSE_START_H_
#define SATRAP_NN_WORKER_GRAPH_SAVED_DENSE_START_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "nn_worker/graph/saved/dense_checkpoint.h"
#include "nn_worker/optimizer/dense_optimizer.h"
#include "proto/job.pb.h"

namespace satrap {

// A DenseStart as an array of a dense checkpoint, 1 x 4. Each of its two numbers is low + 2^24 *
// high, stored as low, high. A run whose DenseStart is all zeros saves no such array.
inline constexpr char kDenseStartName[] = "#warm_start";
absl::optional<NamedArray> EncodeStart(const DenseStart& start);
// Removes the DenseStart from the arrays of a checkpoint and returns it; zeros if there is none.
// DATA_LOSS if the array is not one that EncodeStart makes.
absl::StatusOr<DenseStart> TakeStart(std::vector<NamedArray>* arrays);

// An array of the network that a run trains.
struct ArrayShape {
  std::string name;
  int64_t rows = 0;
  int64_t cols = 0;
};

struct DenseTake {
  absl::flat_hash_map<std::string, const NamedArray*> arrays;  // by name; of the `saved` given
  std::vector<std::string> fresh;    // may be taken, but not in the model: keep initial values
  std::vector<std::string> ignored;  // in the model, but not in the network
  bool has_state = false;            // the optimizer's state is taken, too
  DenseStart start;
};

// The names of the arrays that were taken, and of those that were not.
struct TakenOfModel {
  std::vector<std::string> taken, fresh, ignored;  // as in DenseTake
  bool has_state = false;
};

// `values` are the parameters and running statistics of the network, and `states` the state arrays
// of its optimizer; `model_step` is the number of steps of the run that saved the model. The state
// is taken only if every value is taken and the model has all of `states`, because a rule has only
// one count of steps for all parameters. If values are taken without the state, the learning rate
// warms up. FAILED_PRECONDITION, naming both shapes, if an array that is taken has another shape.
absl::StatusOr<DenseTake> PlanDenseTake(const WarmStartConfig& config, uint64_t model_step,
                                        absl::Span<const NamedArray> saved,
                                        absl::Span<const ArrayShape> values,
                                        absl::Span<const ArrayShape> states);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_SAVED_DENSE_START_H_
