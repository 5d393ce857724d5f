#include "deploy/report/data_warnings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"
#include "common/config/label_targets.h"

namespace satrap {
namespace {

void Add(const LabelRange& range, LabelRange* to) {
  if (range.count() == 0) return;
  const bool first = to->count() == 0;
  to->set_least(first ? range.least() : std::min(to->least(), range.least()));
  to->set_largest(first ? range.largest() : std::max(to->largest(), range.largest()));
  to->set_count(to->count() + range.count());
}

std::string Text(const LabelTargets& targets, const LabelRange& all) {
  const std::string& loss = TaskConfig::Loss_Name(targets.loss);
  if (targets.learns_from == LearnsFrom::kDifferences && all.least() == all.largest()) {
    return absl::StrCat("label ", targets.column, ": all ", CountText(all.count()),
                        " training labels are ", all.least(), ", from which ", loss,
                        " learns nothing but that number");
  }
  const bool one_side = all.largest() <= 0.5f || all.least() > 0.5f;
  if (targets.learns_from == LearnsFrom::kSidesOfAHalf && one_side) {
    return absl::StrCat("label ", targets.column, ": all ", CountText(all.count()),
                        " training labels are in [", all.least(), ", ", all.largest(), "], on one ",
                        "side of 1/2, so ", loss, " has no pair to learn from");
  }
  return "";
}

}  // namespace

std::vector<std::string> DataWarnings::TakeNew(const StatusAnswer& status) {
  std::vector<std::string> taken;
  for (const RoleStatus& role : status.roles()) {
    if (!role.has_loader()) continue;
    labels_[{status.generation(), role.member().index()}] = {role.loader().labels().begin(),
                                                             role.loader().labels().end()};
    for (const std::string& warning : role.loader().warnings()) {
      if (std::find(warnings_.begin(), warnings_.end(), warning) != warnings_.end()) continue;
      warnings_.push_back(warning);
      taken.push_back(warning);
    }
  }
  return taken;
}

void DataWarnings::Restore(const LoaderProgress& kept) {
  warnings_.assign(kept.warnings().begin(), kept.warnings().end());
  labels_[{0, 0}] = {kept.labels().begin(), kept.labels().end()};
  since_begin_ = kept.labels_size() > 0;
}

LoaderProgress DataWarnings::Kept() const {
  LoaderProgress kept;
  kept.mutable_warnings()->Assign(warnings_.begin(), warnings_.end());
  return kept;
}

LoaderProgress DataWarnings::KeptAtEnd() const {
  LoaderProgress kept = Kept();
  // If the beginning was not seen, keep no ranges: they would be mistaken for ranges of all labels.
  if (!since_begin_) return kept;
  const std::vector<LabelRange> all = AllLabels();
  kept.mutable_labels()->Assign(all.begin(), all.end());
  // If there is no range, add an empty one: any labels tell Restore that they were saved after the
  // last label was read, so they are complete.
  if (all.empty()) kept.add_labels();
  return kept;
}

std::vector<std::string> DataWarnings::All(const JobConfig& job) const {
  std::vector<std::string> all = warnings_;
  if (!since_begin_ || job.action() != JobConfig::TRAIN) return all;
  for (std::string& warning : EqualLabels(job)) all.push_back(std::move(warning));
  return all;
}

std::vector<LabelRange> DataWarnings::AllLabels() const {
  std::vector<LabelRange> all;
  for (const auto& [loader, ranges] : labels_) {
    all.resize(std::max(all.size(), ranges.size()));
    for (size_t i = 0; i < ranges.size(); ++i) Add(ranges[i], &all[i]);
  }
  return all;
}

std::vector<std::string> DataWarnings::EqualLabels(const JobConfig& job) const {
  const std::vector<LabelRange> all = AllLabels();
  std::vector<std::string> warnings;
  const std::vector<LabelTargets> targets = LabelTargetsOf(job);
  for (size_t i = 0; i < std::min(all.size(), targets.size()); ++i) {
    // With a single label, equal labels mean nothing.
    if (all[i].count() < 2) continue;
    std::string text = Text(targets[i], all[i]);
    if (!text.empty()) warnings.push_back(std::move(text));
  }
  return warnings;
}

}  // namespace satrap
