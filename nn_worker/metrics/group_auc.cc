#include "nn_worker/metrics/group_auc.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

// An entry on the wire: u64 group | f32 score | f64 weight.
constexpr size_t kEntryBytes = 20;

}  // namespace

void GroupAuc::Add(const ScoredSamples& samples) {
  CHECK(samples.groups.size() == samples.labels.size());
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    const double weight = samples.weight(i);
    if (!samples.counts(i) || weight == 0) continue;
    if (std::isnan(samples.scores[i])) {
      ++sums_[kNanScores];
      continue;
    }
    entries_.push_back(
        {samples.groups[i], samples.scores[i], samples.labels[i] > 0.5f ? weight : -weight});
  }
}

std::string GroupAuc::Encode() const {
  std::string bytes(entries_.size() * kEntryBytes, '\0');
  char* at = bytes.data();
  for (const Entry& entry : entries_) {
    std::memcpy(at, &entry.group, 8);
    std::memcpy(at + 8, &entry.score, 4);
    std::memcpy(at + 12, &entry.weight, 8);
    at += kEntryBytes;
  }
  return bytes;
}

absl::Status GroupAuc::AppendGroupsOf(int rank, int num_ranks, absl::string_view bytes) {
  if (bytes.size() % kEntryBytes != 0) {
    return absl::InvalidArgumentError("GAUC state of another rank: wrong size");
  }
  for (size_t at = 0; at < bytes.size(); at += kEntryBytes) {
    Entry entry;
    std::memcpy(&entry.group, bytes.data() + at, 8);
    if (Mix64(entry.group) % static_cast<uint64_t>(num_ranks) != static_cast<uint64_t>(rank)) {
      continue;
    }
    std::memcpy(&entry.score, bytes.data() + at + 8, 4);
    std::memcpy(&entry.weight, bytes.data() + at + 12, 8);
    entries_.push_back(entry);
  }
  return absl::OkStatus();
}

absl::Status GroupAuc::Merge(Collective* collective) {
  ASSIGN_OR_RETURN(const std::vector<std::string> states, collective->AllGatherBytes(Encode()));
  entries_.clear();
  for (const std::string& state : states) {
    RETURN_IF_ERROR(AppendGroupsOf(collective->rank(), collective->size(), state));
  }
  // By weight, too, so that a group's sums do not depend on which rank had which sample.
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.group, a.score, a.weight) < std::tie(b.group, b.score, b.weight);
  });
  const Entry* const end = entries_.data() + entries_.size();
  for (const Entry* begin = entries_.data(); begin != end;) {
    const Entry* group_end = begin;
    while (group_end != end && group_end->group == begin->group) ++group_end;
    AddGroup(begin, group_end);
    begin = group_end;
  }
  entries_.clear();
  return collective->AllReduceSum(absl::MakeSpan(sums_));
}

void GroupAuc::AddGroup(const Entry* begin, const Entry* end) {
  double won = 0, positives = 0, negatives = 0;
  for (const Entry* at = begin; at != end;) {
    double tied_positives = 0, tied_negatives = 0;
    const float score = at->score;
    for (; at != end && at->score == score; ++at) {
      (at->weight > 0 ? tied_positives : tied_negatives) += std::abs(at->weight);
    }
    won += tied_positives * (negatives + tied_negatives / 2);
    positives += tied_positives;
    negatives += tied_negatives;
  }
  if (positives == 0 || negatives == 0) {
    ++sums_[kLeftOut];
    return;
  }
  const double weight = positives + negatives;
  sums_[kWeightedAuc] += weight * won / (positives * negatives);
  sums_[kWeight] += weight;
  ++sums_[kGroups];
}

void GroupAuc::Finish(MetricValues* values) {
  const bool defined = sums_[kWeight] > 0 && sums_[kNanScores] == 0;
  values->set_gauc_by_samples(defined ? sums_[kWeightedAuc] / sums_[kWeight]
                                      : std::numeric_limits<double>::quiet_NaN());
  values->set_gauc_groups(static_cast<uint64_t>(sums_[kGroups]));
  values->set_gauc_groups_left_out(static_cast<uint64_t>(sums_[kLeftOut]));
}

}  // namespace satrap
