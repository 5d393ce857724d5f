#include "data_loader/check/first_labels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

constexpr size_t kShownValues = 5;

}  // namespace

FirstLabels::FirstLabels(std::vector<LabelTargets> targets)
    : targets_(std::move(targets)), seen_(targets_.size()) {}

void FirstLabels::Add(const float* labels) {
  if (full()) return;
  MutexLock lock(&mutex_);
  if (records_ == kRecords) return;
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (std::isnan(labels[i])) continue;
    ++seen_[i].labels;
    ++seen_[i].values[labels[i]];
    if (!targets_[i].Takes(labels[i])) ++seen_[i].refused;
  }
  if (++records_ == kRecords) full_.store(true, std::memory_order_relaxed);
}

absl::Status FirstLabels::Check() const {
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < seen_.size(); ++i) {
    RETURN_IF_ERROR(CheckColumn(targets_[i], seen_[i]));
  }
  return absl::OkStatus();
}

absl::Status FirstLabels::CheckSoFar() const {
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].refused * 100 > kRecords) RETURN_IF_ERROR(CheckColumn(targets_[i], seen_[i]));
  }
  return absl::OkStatus();
}

// The values as a text: "1 (503 times), -1 (497 times), ...".
std::string FirstLabels::ValuesText(const Seen& seen) {
  std::vector<std::pair<uint64_t, float>> by_count;
  for (const auto& [value, count] : seen.values) by_count.emplace_back(count, value);
  std::stable_sort(by_count.begin(), by_count.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> shown;
  for (const auto& [count, value] : by_count) {
    if (shown.size() == kShownValues) {
      shown.push_back("...");
      break;
    }
    shown.push_back(absl::StrCat(value, " (", count, count == 1 ? " time)" : " times)"));
  }
  return absl::StrJoin(shown, ", ");
}

// What to do about the labels, for the end of the error message.
std::string FirstLabels::Cure(const LabelTargets& targets, const Seen& seen) {
  if (targets.loss == TaskConfig::SOFTMAX_CROSS_ENTROPY) {
    return "Number the classes from 0, list their strings as the column's vocabulary, or give the "
           "output of the model as many values as there are classes";
  }
  if (targets.loss == TaskConfig::MSE) return "Scale the labels";
  // If there are exactly two values, the larger one probably means "yes". Otherwise the advice
  // shows the usual -1 and 1 as an example.
  const bool two = seen.values.size() == 2;
  const float negative = two ? seen.values.begin()->first : -1;
  const float positive = two ? seen.values.rbegin()->first : 1;
  return absl::StrCat(
      "If they stand for no and yes, as -1 and 1 do, give the column positive_values: \"", positive,
      "\" and negative_values: \"", negative,
      "\" instead of numeric_label. For other numbers, such as ratings, name another loss in "
      "model.tasks: MSE for numbers, SOFTMAX_CROSS_ENTROPY for classes, BPR for an order");
}

absl::Status FirstLabels::CheckColumn(const LabelTargets& targets, const Seen& seen) {
  if (seen.refused <= 1 || seen.refused * 100 <= seen.labels) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("label ", targets.column, ": ", seen.refused, " of the first ", seen.labels,
                   " labels of the training data are not ", targets.Text(), ". The values are ",
                   ValuesText(seen), ". ", Cure(targets, seen)));
}

}  // namespace satrap
