// Which labels the losses of a job take, and what labels give them nothing to learn
// (docs/models.md, "What labels a loss takes").
//
// Thread-safe: functions of their arguments.

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

// Numbers of a record that are larger than this, in magnitude, and reach the network make it a bad
// record: the sum of some squares of them would leave the range of a float.
inline constexpr float kLargestNumber = 1e15f;

// What a loss learns from besides the features.
enum class LearnsFrom {
  kNoLabel,       // labels are not read
  kDifferences,   // labels that differ; of equal ones it learns a constant
  kSidesOfAHalf,  // pairs of a label above 1/2 and one that is not
};

// Of one LABEL column: what all tasks that read it as their label take.
struct LabelTargets {
  std::string column;
  TaskConfig::Loss loss = TaskConfig::BCE;  // of these tasks, the one that takes the least
  float least = -std::numeric_limits<float>::infinity();  // a label is in [least, largest]
  float largest = std::numeric_limits<float>::infinity();
  bool whole = false;  // and a whole number
  LearnsFrom learns_from = LearnsFrom::kNoLabel;

  // A missing label, NaN, is none.
  bool Takes(float label) const {
    return label >= least && label <= largest && (!whole || label == std::floor(label));
  }
  // What they take, in words: "a number in [0, 1], which BCE takes".
  std::string Text() const;
};

// One for each LABEL column, in the order of LabelsOf. REQUIRES: a validated job
std::vector<LabelTargets> LabelTargetsOf(const JobConfig& job);

// The number of values of an output of the model, where the layers say it without the widths of the
// features: absent otherwise. `name` is a layer, or LAYER:n of one with several outputs.
absl::optional<int64_t> OutputWidth(const ModelConfig& model, const std::string& name);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_LABEL_TARGETS_H_
