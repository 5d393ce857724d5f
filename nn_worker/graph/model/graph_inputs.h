// The inputs of the dense network: the numeric block and the segments of the id features, as the
// job's data and tables declare them.

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_GRAPH_INPUTS_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_GRAPH_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace satrap {

// The graph input of the numeric block.
inline constexpr char kNumericInput[] = "numeric";

// The "feature" of candidates: their graph inputs are named "candidates.SEGMENT".
inline constexpr char kCandidateInput[] = "candidates";

// A feature that is a sequence also has the graph input "FEATURE.length".
inline constexpr char kLengthInput[] = "length";

// One segment of one id feature. Its graph input is named "FEATURE.SEGMENT".
struct FeatureSegment {
  std::string feature;
  std::string segment;
  int64_t dim = 0;
  // 0: pooled, of shape [dim]. Otherwise a sequence of shape [max_length, dim], whose rows are zero
  // after its end.
  int64_t max_length = 0;
};

struct GraphInputs {
  // The number of columns of the graph input "numeric", which every job has; 0 without numerics.
  int64_t numeric_width = 0;
  // The segments of all features, in the order of DataConfig.features; the segments of a feature
  // are in the order of its table.
  std::vector<FeatureSegment> segments;
  // The features that are sequences, in the order of DataConfig.features. Each has a graph input
  // "FEATURE.length", [1], which holds the number of a sample's positions.
  std::vector<std::string> sequences;
  // The segments of the part's candidates (ModelConfig.candidates); their `feature` is
  // kCandidateInput. Each belongs to the part, not to its samples: [max_candidates, dim].
  std::vector<FeatureSegment> candidates;
  int64_t max_candidates = 0;
  // The maximum number of samples of a part. An output with a column for each sample has this many
  // columns.
  int64_t max_samples = 1;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_GRAPH_INPUTS_H_
