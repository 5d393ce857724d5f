#include "tests/simulation/data/sim_tables.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/data/sim_formats.h"

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

double SimTables::StepRows(const std::map<uint64_t, RowGradient>& sums, const StepOfRows& step) {
  return StepTable(shape_, sums, step, &content_.rows);
}

// Every sample holds the counter row. This row shows how many pushes of each rank the part's Lookup
// saw, and the sum of their numbers. The Lookup may miss only the last max_staleness - 1 pushes of
// its own rank, and none during the warm-up of staleness.
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
    // The smallest possible sum of `missing` different push numbers that are all among the last
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
  for (size_t j = 0; j < part.candidates.size(); ++j) {
    const auto row = content_.rows.find(part.candidate_keys[j]);
    for (int d = 0; d < kRowValues; ++d) {
      const double expected = row == content_.rows.end() ? absent : row->second.values[d];
      const double got = part.CandidateValue(j, d);
      if (!(std::abs(got - expected) <= kTolerance * (1 + std::abs(expected)))) {
        violated_(
            absl::StrCat("candidate ", j, " value ", d, " came as ", got, ", not ", expected));
      }
    }
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
  // A part without samples touches its candidates, too, with gradients of 0.
  for (size_t j = 0; j < part.candidates.size(); ++j) {
    RowGradient& sum = (*sums)[part.candidate_keys[j]];
    for (const SimSample& sample : part.samples) {
      for (int d = 0; d < kRowValues; ++d) {
        sum[d] += CandidateGradient(sample, j, d, PullOf(shape_), part.CandidateValue(j, d));
      }
    }
  }
}

// A push that is not finite also has a call number, but none of its Updates changes a row.
void SimTables::NotePush(int rank, const SimPart& part, bool finite, const StepOfRows& step) {
  Push& push = pushes_[rank].emplace_back();
  push.step = step;
  double weight = 0;
  for (const SimSample& sample : part.samples) weight += sample.weight;
  push.share = weight / step.normalizer;
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
    const StepOfRows& step = push.step;
    SimRow& row = content_.rows[key];
    if (!shape_.frozen) {
      row.Step(shape_, {sum, step.normalizer, push.share, step.step, /*held=*/true, step.rate});
    }
  }
}

}  // namespace satrap::simulation
