// The zoo: ready models by name, the .textproto files of this folder compiled into the program.
// `zoo: "deepfm"` in a job stands for the layers of deepfm.textproto.

#ifndef SATRAP_NN_WORKER_MODELS_ZOO_H_
#define SATRAP_NN_WORKER_MODELS_ZOO_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/model.pb.h"

namespace satrap {

// Sorted: "adult_persia", "deepfm", ...
std::vector<std::string> ZooNames();

// NOT_FOUND, listing the models that exist.
absl::StatusOr<ModelConfig> ZooModel(absl::string_view name);

// Replaces the layers and the output of a model that names a zoo file and has no layers of its own;
// else does nothing. The result is what a resolved job holds. NOT_FOUND as above.
absl::Status ResolveZoo(ModelConfig* model);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_MODELS_ZOO_H_
