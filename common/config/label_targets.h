// Which labels the losses of a job accept, and from which labels a loss can learn nothing
// (docs/models.md, "What labels a loss takes").
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_LABEL_TARGETS_H_
#define SATRAP_COMMON_CONFIG_LABEL_TARGETS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/config/tasks.h"
#include "proto/job.pb.h"

namespace satrap {

// A record is bad if one of its numbers that reach the network is larger than this in magnitude:
// the sum of some squares of such numbers would leave the range of a float.
inline constexpr float kLargestNumber = 1e15f;

// What a loss learns from in addition to the features.
enum class LearnsFrom {
  kNoLabel,       // labels are not read
  kDifferences,   // labels that differ; from equal labels it learns only a constant
  kSidesOfAHalf,  // pairs of a label above 1/2 and a label that is not
};

// The labels that one LABEL column may have. A label is allowed if it is accepted by every task
// that reads the column as its label. A task that reads the column only as its mask does not count.
struct LabelTargets {
  std::string column;
  TaskConfig::Loss loss = TaskConfig::BCE;  // the most restrictive loss of these tasks
  float least = -std::numeric_limits<float>::infinity();  // a label is in [least, largest]
  float largest = std::numeric_limits<float>::infinity();
  bool whole = false;  // if true, a label must also be a whole number
  LearnsFrom learns_from = LearnsFrom::kNoLabel;

  // False for a missing label, which is NaN.
  bool Takes(float label) const {
    return label >= least && label <= largest && (!whole || label == std::floor(label));
  }
  // The labels that the tasks take, in words: "a number in [0, 1], which BCE takes".
  std::string Text() const;
};

// One entry for each LABEL column, in the order of LabelsOf. REQUIRES: a validated job
std::vector<LabelTargets> LabelTargetsOf(const JobConfig& job);

// The number of classes of a task's output, as loaders know it. Absent if the job does not
// determine it, or if the run began with rules (data.record_rules) that do not examine the layer.
absl::optional<int64_t> ClassesOf(const JobConfig& job, const std::string& output);

// The number of values of an output of the model; absent if it depends on the widths of features.
// `name` is a layer, or LAYER:n for an output of a layer that has several.
absl::optional<int64_t> OutputWidth(const ModelConfig& model, const std::string& name);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_LABEL_TARGETS_H_
