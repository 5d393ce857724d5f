#include "nn_worker/metrics/group_auc.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/numeric/hash.h"
#include "nn_worker/metrics/entry_exchange.h"

namespace satrap {

void GroupAuc::Add(const ScoredSamples& samples) {
  CHECK(samples.groups.size() == samples.labels.size());
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    const auto weight = static_cast<float>(samples.weight(i));
    if (!samples.counts(i) || weight == 0) continue;
    if (std::isnan(samples.scores[i])) {
      ++counts_[kNanScores];
      continue;
    }
    entries_.Add(
        {samples.groups[i], samples.scores[i], samples.labels[i] > 0.5f ? weight : -weight});
  }
}

absl::Status GroupAuc::Merge(Collective* collective) {
  const auto ranks = static_cast<uint64_t>(collective->size());
  RETURN_IF_ERROR(ExchangeEntries(
      collective, [ranks](const Entry& entry) { return Mix64(entry.group) % ranks; },
      SortedBlocks<Entry>(), &entries_));
  AddGroups();
  entries_ = SortedBlocks<Entry>();
  return AddUpRanks(collective);
}

void GroupAuc::AddGroups() {
  // Sums over the group's samples so far. The members that begin with tied_ cover only the samples
  // with the last score.
  double won = 0, positives = 0, negatives = 0, tied_positives = 0, tied_negatives = 0;
  const auto end_of_score = [&] {
    won += tied_positives * (negatives + tied_negatives / 2);
    positives += tied_positives;
    negatives += tied_negatives;
    tied_positives = tied_negatives = 0;
  };
  const auto end_of_group = [&] {
    end_of_score();
    if (positives == 0 || negatives == 0) {
      counts_[kLeftOut] += positives + negatives > 0 ? 1 : 0;  // no group before the first
    } else {
      const double weight = positives + negatives;
      weighted_auc_.Add(weight * won / (positives * negatives));
      weight_.Add(weight);
      ++counts_[kGroups];
    }
    won = positives = negatives = 0;
  };
  Entry last = {};
  entries_.ForEachAscending([&](const Entry& entry) {
    if (entry.group != last.group) {
      end_of_group();
    } else if (entry.score != last.score) {
      end_of_score();
    }
    last = entry;
    (entry.weight > 0 ? tied_positives : tied_negatives) += std::abs(entry.weight);
  });
  end_of_group();
}

absl::Status GroupAuc::AddUpRanks(Collective* collective) {
  RETURN_IF_ERROR(collective->AllReduceSum(absl::MakeSpan(counts_)));
  for (ExactSum* const sum : {&weighted_auc_, &weight_}) {
    const auto terms = sum->Terms();
    ASSIGN_OR_RETURN(const std::vector<std::string> from_ranks,
                     collective->AllGatherBytes({reinterpret_cast<const char*>(terms.data()),
                                                 terms.size() * sizeof(double)}));
    for (size_t rank = 0; rank < from_ranks.size(); ++rank) {
      if (static_cast<int>(rank) == collective->rank()) continue;  // has its own already
      const std::string& bytes = from_ranks[rank];
      if (bytes.size() % sizeof(double) != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("evaluation: nn_worker ", rank, " sent ", bytes.size(),
                         " bytes of a GAUC, which is not a whole number of doubles"));
      }
      for (size_t at = 0; at < bytes.size(); at += sizeof(double)) {
        double term;
        std::memcpy(&term, bytes.data() + at, sizeof(term));
        sum->Add(term);
      }
    }
  }
  return absl::OkStatus();
}

void GroupAuc::Finish(MetricValues* values) {
  const double weight = weight_.Rounded();
  const bool defined = weight > 0 && counts_[kNanScores] == 0;
  values->set_gauc_by_samples(defined ? weighted_auc_.Rounded() / weight
                                      : std::numeric_limits<double>::quiet_NaN());
  values->set_gauc_groups(static_cast<uint64_t>(counts_[kGroups]));
  values->set_gauc_groups_left_out(static_cast<uint64_t>(counts_[kLeftOut]));
}

}  // namespace satrap
