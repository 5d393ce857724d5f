#include "embedding_worker/candidates/part_candidates.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/candidates.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

// Makes these random numbers independent of others that come from the same seed.
constexpr uint64_t kStream = 0x43414e4449444154ULL;

uint64_t CounterOf(const PartId& part, bool ordered) {
  uint64_t counter = Mix64(part.epoch());
  counter = Mix64(counter ^ part.lane());
  counter = Mix64(counter ^ part.seq());
  return ordered ? counter : Mix64(counter ^ part.part());
}

absl::StatusOr<std::unique_ptr<const CandidateSampler>> NewSampler(const CandidatesConfig& config,
                                                                   const CandidateList& list) {
  const auto size = static_cast<int64_t>(list.size());
  switch (config.sampler()) {
    case CandidatesConfig::UNIFORM:
      return NewUniformSampler(size);
    case CandidatesConfig::LOG_UNIFORM:
      return NewLogUniformSampler(size);
    case CandidatesConfig::FIXED_UNIGRAM:
      break;
  }
  const std::vector<double> counts(list.counts.begin(), list.counts.end());
  return NewUnigramSampler(counts, config.distortion());
}

}  // namespace

absl::StatusOr<std::unique_ptr<const CandidateSource>> CandidateSource::Create(const JobConfig& job,
                                                                               CandidateList list) {
  if (!NeedsCandidateList(job)) return nullptr;
  const CandidatesConfig& config = job.model().candidates();
  // With only one item in the list, every sample's own item would be the same as its candidates, so
  // there would be nothing to learn.
  if (list.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.candidates.list: needs at least two items to learn from, but has ", list.size()));
  }
  if (config.unique() && static_cast<size_t>(config.count()) > list.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.candidates.count: must be at most ", list.size(),
        ", the number of items of the list, because `unique` draws no item twice, got ",
        config.count()));
  }
  auto sampler = NewSampler(config, list);
  if (!sampler.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.candidates.list: ", sampler.status().message()));
  }
  return std::unique_ptr<const CandidateSource>(
      new CandidateSource(job, std::move(list), *std::move(sampler)));
}

CandidateSource::CandidateSource(const JobConfig& job, CandidateList list,
                                 std::unique_ptr<const CandidateSampler> sampler)
    : config_(job.model().candidates()),
      ordered_(job.mode() == JobConfig::SYNC),
      seed_(Mix64(job.seed() ^ kStream)),
      ids_(std::move(list.ids)),
      sampler_(std::move(sampler)) {
  if (!config_.subtract_log_q()) return;
  classes_.reserve(ids_.size());
  for (size_t i = 0; i < ids_.size(); ++i) {
    const auto c = static_cast<int64_t>(i);
    if (!(sampler_->Probability(c) > 0)) continue;
    classes_.emplace(ids_[i], c);
    if (sampler_->Probability(c) <= sampler_->Probability(rarest_)) rarest_ = c;
  }
}

PartCandidates CandidateSource::Draw(const PartId& part,
                                     absl::Span<const uint64_t> positives) const {
  const Candidates drawn = DrawCandidates(*sampler_, config_.count(), config_.unique(), seed_,
                                          CounterOf(part, ordered_));
  PartCandidates candidates;
  candidates.ids.reserve(drawn.classes.size());
  for (const int64_t c : drawn.classes) candidates.ids.push_back(ids_[c]);
  if (!config_.subtract_log_q()) return candidates;
  const auto log_q = [&](int64_t c) {
    return static_cast<float>(config_.count() == 0 ? std::log(sampler_->Probability(c))
                                                   : LogExpectedCount(*sampler_, drawn, c));
  };
  candidates.log_q.reserve(drawn.classes.size());
  for (const int64_t c : drawn.classes) candidates.log_q.push_back(log_q(c));
  candidates.positive_log_q.reserve(positives.size());
  for (const uint64_t id : positives) {
    const auto at = classes_.find(id);
    candidates.positive_log_q.push_back(log_q(at == classes_.end() ? rarest_ : at->second));
  }
  return candidates;
}

}  // namespace satrap
