#include "data_loader/first_labels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "data_loader/batch/file_block_reader.h"

namespace satrap {
namespace {

constexpr uint64_t kFirstLabels = 1000;
constexpr size_t kShownValues = 5;

// The known labels of a column.
struct Seen {
  uint64_t labels = 0;
  uint64_t refused = 0;
  std::map<float, uint64_t> values;  // at most kFirstLabels
};

// "1 (503 times), -1 (497 times), ..."
std::string ValuesText(const Seen& seen) {
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

// The advice at the end of the message.
std::string Cure(const LabelTargets& targets, const Seen& seen) {
  if (targets.loss == TaskConfig::SOFTMAX_CROSS_ENTROPY) {
    return "Number the classes from 0, list their strings as the column's vocabulary, or give the "
           "output of the model as many values as there are classes";
  }
  if (targets.loss == TaskConfig::MSE) return "Scale the labels";
  // Of two values the larger one means "yes". With more or fewer nothing is known, so the usual -1
  // and 1 are shown.
  const bool two = seen.values.size() == 2;
  const float negative = two ? seen.values.begin()->first : -1;
  const float positive = two ? seen.values.rbegin()->first : 1;
  return absl::StrCat(
      "If they stand for no and yes, as -1 and 1 do, give the column positive_values: \"", positive,
      "\" and negative_values: \"", negative,
      "\" in the place of numeric_label. For other numbers, such as ratings, name another loss in "
      "model.tasks: MSE for numbers, SOFTMAX_CROSS_ENTROPY for classes, BPR for an order");
}

absl::Status Judge(const LabelTargets& targets, const Seen& seen) {
  if (seen.refused <= 1 || seen.refused * 100 <= seen.labels) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("label ", targets.column, ": ", seen.refused, " of the first ", seen.labels,
                   " labels of the training data are not ", targets.Text(), ". The values are ",
                   ValuesText(seen), ". ", Cure(targets, seen)));
}

}  // namespace

absl::Status CheckFirstLabels(const StreamSpec& train, uint32_t loader, uint32_t loaders) {
  if (train.click_log != nullptr || train.splits.empty()) return absl::OkStatus();
  const std::vector<LabelTargets>& targets = train.check.labels();
  std::vector<Seen> seen(targets.size());
  const std::unique_ptr<Parser> parser = NewParser(train.job.data(), train.stream);
  // Training counts and keeps bad records. Here the limit only ends the search if hardly a record
  // is good.
  ReadProgress::Options limit;
  limit.max_bad_fraction = train.job.data().max_bad_fraction();
  ReadProgress unreported(std::move(limit));
  FileBlockOptions options;
  options.stream = train.stream;
  options.block_rows = kFirstLabels;
  options.filter = &train.filter;
  options.parser = parser.get();
  options.progress = &unreported;
  Block block(train.schema);
  uint64_t rows = 0;
  for (uint32_t split = loader; split < train.splits.size() && rows < kFirstLabels;
       split += loaders) {
    ASSIGN_OR_RETURN(const std::unique_ptr<BlockReader> reader,
                     NewFileBlockReader(train.splits[split], split, options));
    while (rows < kFirstLabels) {
      const absl::StatusOr<bool> found = reader->Next(&block);
      // Training reports this error, with the file of bad records.
      if (absl::IsFailedPrecondition(found.status())) return absl::OkStatus();
      RETURN_IF_ERROR(found.status());
      if (!*found) break;
      for (size_t row = 0; row < block.records.rows() && rows < kFirstLabels; ++row, ++rows) {
        for (size_t i = 0; i < targets.size(); ++i) {
          const float label = block.records.labels(row)[i];
          if (std::isnan(label)) continue;
          ++seen[i].labels;
          ++seen[i].values[label];
          if (!targets[i].Takes(label)) ++seen[i].refused;
        }
      }
    }
  }
  for (size_t i = 0; i < targets.size(); ++i) RETURN_IF_ERROR(Judge(targets[i], seen[i]));
  return absl::OkStatus();
}

}  // namespace satrap
