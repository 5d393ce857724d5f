// Draws the candidates of parts: items, with the log Q of these items and of the samples' own items
// (CandidatesConfig in proto/model.proto).
//
// A draw depends on the job's seed and on the part's id. In SYNC it depends only on (epoch, lane,
// seq) of the id, so all parts of a batch have the same candidates, however many parts there are.
// In HYBRID it also depends on the part's number in its batch.
//
// Thread-safe: const.

#ifndef SATRAP_EMBEDDING_WORKER_CANDIDATES_PART_CANDIDATES_H_
#define SATRAP_EMBEDDING_WORKER_CANDIDATES_PART_CANDIDATES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/candidates/candidate_list.h"
#include "embedding_worker/candidates/candidate_sampler.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct PartCandidates {
  std::vector<uint64_t> ids;  // in the order of the draws
  // Both are empty unless subtract_log_q is set. They are logarithms of the expected count among
  // the part's candidates or, if nothing is drawn (count 0), of the probability.
  std::vector<float> log_q;           // [ids]
  std::vector<float> positive_log_q;  // [samples]
};

class CandidateSource {
 public:
  // Returns null if the job needs no list (NeedsCandidateList), because nothing is drawn.
  // INVALID_ARGUMENT, naming the field, if the list has fewer than two items, has fewer items than
  // `count` and `unique` require, or has counts that FIXED_UNIGRAM cannot use. REQUIRES: a
  // validated job
  static absl::StatusOr<std::unique_ptr<const CandidateSource>> Create(const JobConfig& job,
                                                                       CandidateList list);

  // Whether this part's candidates count as samples that hold the candidates' keys (L2 of mode
  // OCCURRENCE, CowClip). If several parts have the same candidates, these must count only once, so
  // in SYNC only those of part 0 count.
  bool CountsIn(const PartId& part) const { return !ordered_ || part.part() == 0; }

  // `positives` is the item of each sample. If the item is not in the list, or is never drawn, its
  // log Q is that of the rarest item that can be drawn.
  PartCandidates Draw(const PartId& part, absl::Span<const uint64_t> positives) const;

 private:
  CandidateSource(const JobConfig& job, CandidateList list,
                  std::unique_ptr<const CandidateSampler> sampler);

  const CandidatesConfig config_;
  const bool ordered_;
  const uint64_t seed_;
  const std::vector<uint64_t> ids_;  // by class
  const std::unique_ptr<const CandidateSampler> sampler_;
  absl::flat_hash_map<uint64_t, int64_t> classes_;  // by id; those with P(c) > 0
  int64_t rarest_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_CANDIDATES_PART_CANDIDATES_H_
