#include "deploy/cli/show/model_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "nn_worker/graph/model/graph_builder.h"
#include "nn_worker/graph/model/model_description.h"
#include "nn_worker/zoo/zoo.h"

namespace satrap {
namespace {

// Formats a count as "423,280". Counts have up to 15 digits, which nobody can read without commas.
std::string Grouped(int64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace

std::string ZooText() {
  std::string text;
  for (const std::string& name : ZooNames()) {
    absl::StrAppendFormat(&text, "%s\n%s\n", name, ZooComment(name));
  }
  return text + "A job takes one by `model { zoo: \"NAME\" }`. `satrap model NAME` shows it.\n";
}

absl::StatusOr<std::string> ModelText(const ModelConfig& model, const GraphInputs& inputs,
                                      const std::vector<TableSize>& tables, int64_t rows) {
  ASSIGN_OR_RETURN(const Graph graph, BuildGraph(model, inputs));
  std::string text = LayerTable(graph);
  const int64_t dense = DenseParameters(graph);
  int64_t all = dense;
  absl::StrAppend(&text, "\ndense parameters   ", Grouped(dense), "\n");
  for (const TableSize& table : tables) {
    absl::StrAppend(&text, "table ", table.name, "   ");
    if (rows > 0) {
      absl::StrAppend(&text, Grouped(rows), " rows of ", table.row_values,
                      " values = ", Grouped(rows * table.row_values), "\n");
      all += rows * table.row_values;
    } else {
      absl::StrAppend(&text, table.row_values, " values a row (--rows N counts N rows)\n");
    }
  }
  if (rows > 0) absl::StrAppend(&text, "all parameters   ", Grouped(all), "\n");
  absl::StrAppend(
      &text, "FLOPs per sample ", Grouped(ForwardFlops(graph)),
      " in the matrix products of the forward pass; training takes about three times as many\n\n");
  return text + DrawAsText(graph);
}

absl::StatusOr<std::string> ModelDot(const ModelConfig& model, const GraphInputs& inputs) {
  ASSIGN_OR_RETURN(const Graph graph, BuildGraph(model, inputs));
  return DrawAsDot(graph);
}

}  // namespace satrap
