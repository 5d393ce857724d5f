#include "embedding_ps/step_collector.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace satrap {

absl::Status StepCollector::Add(const StepHeader& header, uint32_t part_index, Part part) {
  if (header.step() != step_) {
    return absl::InvalidArgumentError(absl::StrCat("step.step: an Update of step ", header.step(),
                                                   " arrived while step ", step_,
                                                   " is being collected"));
  }
  if (part_index >= parts_.size() || parts_[part_index].has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("part: ", part_index, " of step ", step_,
                     part_index >= parts_.size() ? " does not exist" : " has arrived already"));
  }
  // All parts must be normalised in the same way, or their sum would mean nothing. The first part
  // to arrive decides how.
  if (arrived_ == 0) {
    header_ = header;
  } else if (header.normalizer() != header_.normalizer() || header.finite() != header_.finite() ||
             header.learning_rate_factor() != header_.learning_rate_factor() ||
             header.dense_squares() != header_.dense_squares()) {
    return absl::InvalidArgumentError(absl::StrCat("step: the headers of two parts of step ", step_,
                                                   " differ: '", header_.ShortDebugString(),
                                                   "' and '", header.ShortDebugString(), "'"));
  }
  parts_[part_index] = std::move(part);
  ++arrived_;
  return absl::OkStatus();
}

absl::optional<StepCollector::Complete> StepCollector::TakeIfComplete() {
  if (arrived_ < static_cast<int>(parts_.size())) return absl::nullopt;
  Complete complete;
  complete.header = header_;
  for (absl::optional<Part>& part : parts_) {
    complete.parts.push_back(std::move(*part));
    part.reset();
  }
  arrived_ = 0;
  ++step_;
  return complete;
}

std::vector<SummedTable> SumParts(const std::vector<StepCollector::Part>& parts,
                                  const TableOwnership& ownership) {
  std::vector<SummedTable> sums(ownership.tables.size());
  std::vector<absl::flat_hash_map<uint64_t, size_t>> rows(ownership.tables.size());
  std::vector<size_t> most_keys(ownership.tables.size());
  std::vector<bool> counts_known(ownership.tables.size(), true);
  for (const StepCollector::Part& part : parts) {
    for (const TableGradient& from : part.update.tables) {
      most_keys[from.table] += from.keys.size();
      if (from.sample_counts.size() != from.keys.size()) counts_known[from.table] = false;
    }
  }
  // Parts share keys, so the sum of all parts' key counts is an upper bound. Reserving this much
  // keeps the loop below free of rehashing and copying.
  for (size_t table = 0; table < sums.size(); ++table) {
    rows[table].reserve(most_keys[table]);
    sums[table].keys.reserve(most_keys[table]);
    sums[table].gradients.reserve(most_keys[table] * ownership.tables[table].row_values);
    sums[table].sample_counts.reserve(most_keys[table]);
  }
  for (const StepCollector::Part& part : parts) {
    for (const TableGradient& from : part.update.tables) {
      const size_t row_values = ownership.tables[from.table].row_values;
      SummedTable& to = sums[from.table];
      for (size_t i = 0; i < from.keys.size(); ++i) {
        const float* gradient = from.gradients.data() + i * row_values;
        // Missing counts are added as 0. If any part lacks its counts, the sums of this table's
        // counts are dropped after the loop.
        const uint32_t count = from.sample_counts.empty() ? 0 : from.sample_counts[i];
        // Parts are visited in order, so each sum is built in part order. The first gradient of a
        // key is copied, so that a key that only one part has keeps its bits.
        const auto [at, inserted] = rows[from.table].emplace(from.keys[i], to.keys.size());
        if (inserted) {
          to.keys.push_back(from.keys[i]);
          to.gradients.insert(to.gradients.end(), gradient, gradient + row_values);
          to.sample_counts.push_back(count);
          continue;
        }
        float* sum = to.gradients.data() + at->second * row_values;
        for (size_t d = 0; d < row_values; ++d) sum[d] += gradient[d];
        to.sample_counts[at->second] += count;
      }
    }
  }
  std::vector<SummedTable> touched;
  for (size_t table = 0; table < sums.size(); ++table) {
    if (sums[table].keys.empty()) continue;
    sums[table].table = static_cast<int>(table);
    if (!counts_known[table]) sums[table].sample_counts.clear();
    touched.push_back(std::move(sums[table]));
  }
  return touched;
}

namespace {

// Refuses a count of 0: rules take it to mean "no sample" and could not tell it from a missing
// count.
absl::Status CheckCounts(const StepSum& sum, const TableOwnership& ownership) {
  for (const TableGradient& table : sum.tables) {
    if (!ownership.tables[table.table].needs_sample_counts) continue;
    const auto& counts = table.sample_counts;
    const auto missing = std::find(counts.begin(), counts.end(), 0u);
    if (missing == counts.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "tables.counts: key ",
        absl::Hex(table.keys[static_cast<size_t>(missing - counts.begin())], absl::kZeroPad16),
        " of table ", ownership.tables[table.table].id,
        " has a sample count of 0 over all parts of step ", sum.header.step(),
        ", but the table's update rule needs the count"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StepSum> SumStep(StepCollector::Complete step, const TableOwnership& ownership) {
  StepSum sum;
  sum.header = std::move(step.header);
  sum.parts = std::move(step.parts);
  if (!sum.header.finite()) return sum;
  if (sum.parts.size() == 1) {
    sum.tables = sum.parts[0].update.tables;
  } else {
    sum.sums = SumParts(sum.parts, ownership);
    for (const SummedTable& table : sum.sums) {
      sum.tables.push_back({table.table, table.keys, table.gradients, table.sample_counts});
    }
  }
  RETURN_IF_ERROR(CheckCounts(sum, ownership));
  return sum;
}

}  // namespace satrap
