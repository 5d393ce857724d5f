// What `satrap models` and `satrap model` print.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_CLI_SHOW_MODEL_TEXT_H_
#define SATRAP_DEPLOY_CLI_SHOW_MODEL_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn_worker/graph/model/graph_inputs.h"
#include "proto/model.pb.h"

namespace satrap {

// A table, with the number of values in each of its rows.
struct TableSize {
  std::string name;
  int64_t row_values = 0;
};

// The models of the zoo, each with the comment at the top of its file.
std::string ZooText();

// The table of layers, the total parameters and operations, and the graph as a tree. `rows` is the
// number of rows of each table; with 0, rows are not counted. INVALID_ARGUMENT if the model does
// not fit its inputs.
absl::StatusOr<std::string> ModelText(const ModelConfig& model, const GraphInputs& inputs,
                                      const std::vector<TableSize>& tables, int64_t rows);

// The graph in DOT. INVALID_ARGUMENT as for ModelText.
absl::StatusOr<std::string> ModelDot(const ModelConfig& model, const GraphInputs& inputs);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_SHOW_MODEL_TEXT_H_
