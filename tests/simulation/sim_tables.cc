#include "tests/simulation/sim_tables.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/sim_formats.h"

namespace satrap::simulation {
namespace {

constexpr double kTolerance = 1e-3;

}  // namespace

SimTables::SimTables(const WorldShape& shape, Content content,
                     std::function<void(std::string)> violated)
    : shape_(shape),
      violated_(std::move(violated)),
      content_(std::move(content)),
      pushes_(shape.ranks) {
  for (const auto& [key, row] : content_.rows) touched_.insert(key);
}

uint64_t SimTables::CountPush(int rank, const SimPart& part, bool finite) {
  if (finite && !part.samples.empty()) ++content_.pushes[rank];
  return content_.pushes[rank];
}

void SimTables::StepRows(const std::map<uint64_t, RowGradient>& sums, double normalizer,
                         int64_t step) {
  for (const auto& [key, sum] : sums) {
    content_.rows[key].Step(shape_, {sum, normalizer, /*share=*/1, step});
  }
}

// Every sample holds the counter row, which tells how many pushes of each rank the part's Lookup
// saw, and the sum of their numbers. A rank's own pushes that it did not see are among its last
// max_staleness - 1, and there are none during the warm-up of staleness.
void SimTables::CheckCounters(int rank, const SimPart& part, int own_missing,
                              bool others_missing) const {
  if (part.samples.empty()) return;
  for (int r = 0; r < kMaxRanks; ++r) {
    const auto made = static_cast<double>(content_.pushes[r]);
    // A PS may multiply by the inverse of the normalizer, so the sums are whole numbers only up to
    // rounding.
    const double missing = std::round(made - part.pooled[kCounter][r]);
    const double missing_sum =
        std::round(made * (made + 1) / 2 - part.pooled[kCounter][kMaxRanks + r]);
    const double may_miss = r >= shape_.ranks ? 0
                            : r == rank       ? own_missing
                            : others_missing  ? made
                                              : 0;
    // The smallest sum that `missing` different push numbers can have if all are among the last
    // `may_miss`.
    const double least_sum = missing * (made - may_miss + 1) + missing * (missing - 1) / 2;
    if (missing < 0 || missing > may_miss || missing_sum < least_sum) {
      violated_(absl::StrCat("a lookup of rank ", rank, " missed ", missing, " of ", made,
                             " pushes of rank ", r, ", with numbers that add up to ", missing_sum,
                             "; it may miss the last ", may_miss));
    }
  }
}

void SimTables::CheckValue(const SimPart& part, size_t sample, int feature, double absent) const {
  for (int d = 0; d < kRowValues; ++d) {
    double expected = 0;
    for (const uint64_t key : KeysOf(part.samples[sample], feature)) {
      const auto row = content_.rows.find(key);
      expected += row == content_.rows.end() ? absent : row->second.values[d];
    }
    const double got = part.pooled[feature][sample * kRowValues + d];
    if (!(std::abs(got - expected) <= kTolerance * (1 + std::abs(expected)))) {
      violated_(absl::StrCat("sample ", part.samples[sample].id, " feature ", feature, " value ", d,
                             " came as ", got, ", not ", expected));
    }
  }
}

void SimTables::CheckValues(const SimPart& part, double absent) const {
  for (size_t s = 0; s < part.samples.size(); ++s) {
    for (const int feature : {kSingle, kSeveral}) CheckValue(part, s, feature, absent);
  }
}

void SimTables::CheckUntouched(const SimPart& part) const {
  for (size_t s = 0; s < part.samples.size(); ++s) {
    for (const int feature : {kSingle, kSeveral}) {
      bool touched = false;
      for (const uint64_t key : KeysOf(part.samples[s], feature)) {
        touched = touched || touched_.count(key) > 0;
      }
      if (!touched) CheckValue(part, s, feature, kInitialRowValue);
    }
  }
}

void SimTables::AddGradients(const SimPart& part, std::map<uint64_t, RowGradient>* sums) const {
  for (size_t s = 0; s < part.samples.size(); ++s) {
    for (const int feature : {kSingle, kSeveral}) {
      for (const uint64_t key : KeysOf(part.samples[s], feature)) {
        RowGradient& sum = (*sums)[key];
        for (int d = 0; d < kRowValues; ++d) {
          sum[d] += SampleGradient(part.samples[s], feature - kSingle, d, PullOf(shape_),
                                   part.pooled[feature][s * kRowValues + d]);
        }
      }
    }
  }
}

// A push that is not finite has a call number as well, but no Update of it changes a row.
void SimTables::NotePush(int rank, const SimPart& part, bool finite, double normalizer,
                         int64_t step) {
  Push& push = pushes_[rank].emplace_back();
  push.normalizer = normalizer;
  push.step = step;
  double weight = 0;
  for (const SimSample& sample : part.samples) weight += sample.weight;
  push.share = weight / normalizer;
  if (!finite) return;
  AddGradients(part, &push.sums);
  for (const auto& [key, sum] : push.sums) {
    touched_.insert(key);
    updates_due_.emplace(formats::OwnerOfKey(key, shape_.ps), rank, pushes_[rank].size());
  }
}

void SimTables::OnUpdateApplied(int ps, uint32_t rank, uint64_t number) {
  if (rank >= pushes_.size() || number == 0 || number > pushes_[rank].size()) {
    violated_(
        absl::StrCat("an Update of push ", number, " of rank ", rank, ", which it has not made"));
    return;
  }
  updates_due_.erase({ps, static_cast<int>(rank), number});
  const Push& push = pushes_[rank][number - 1];
  for (const auto& [key, sum] : push.sums) {
    if (formats::OwnerOfKey(key, shape_.ps) != ps) continue;
    content_.rows[key].Step(shape_, {sum, push.normalizer, push.share, push.step});
  }
}

}  // namespace satrap::simulation
