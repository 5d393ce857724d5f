// The zoo: ready-made models by name. They are the .textproto files of this folder, compiled into
// the program. `zoo: "deepfm"` in a job means the layers of deepfm.textproto.

#ifndef SATRAP_NN_WORKER_ZOO_ZOO_H_
#define SATRAP_NN_WORKER_ZOO_ZOO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn_worker/graph/model/graph_inputs.h"
#include "proto/model.pb.h"

namespace satrap {

// Sorted: "adult_persia", "deepfm", ...
std::vector<std::string> ZooNames();

// NOT_FOUND, listing the models that exist.
absl::StatusOr<ModelConfig> ZooModel(absl::string_view name);

// The comment at the top of the file, indented by two blanks. REQUIRES: the zoo has a model of this
// name
std::string ZooComment(absl::string_view name);

// The shape of the example data with which a model is shown when there is no job.
struct ExampleData {
  int64_t features = 26;  // the default is Criteo's shape
  int64_t numerics = 13;
  int64_t dim = 16;
};

// Inputs that fit a model: every "FEATURE.SEGMENT" that it reads and, for "*.SEGMENT", that segment
// of `data.features` features f1, f2, ... The segment `linear` has 1 value, `field_aware` has a
// vector of `dim` values for each other feature, and every other segment has `dim` values.
GraphInputs ExampleInputs(const ModelConfig& model, const ExampleData& data);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_ZOO_ZOO_H_
