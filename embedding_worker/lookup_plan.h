// A LookupPlan lists the unique keys of one part, table by table, and says for each id of the part
// which of these keys it has. The plan is made once, when the part arrives, and kept until the
// part's gradients have been applied. So gradients return along exactly the path on which values
// came.
//
// The keys of a table are unique across all its features. They are sorted by partition, and within
// a partition by first occurrence. So the keys of each PS are one contiguous range, whatever the
// number of PSs, and nothing depends on the order of a hash map.
//
// Immutable after Make: safe to read from many threads. Has no references to the part.

#ifndef SATRAP_EMBEDDING_WORKER_LOOKUP_PLAN_H_
#define SATRAP_EMBEDDING_WORKER_LOOKUP_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "embedding_worker/embedding_layout.h"

namespace satrap {

// The ids of a part, with one element per feature. Refers to memory of the caller. LookupPlan::Make
// checks it.
struct JaggedIds {
  struct Feature {
    absl::Span<const uint64_t> ids;      // [num_ids]
    absl::Span<const uint32_t> offsets;  // [samples + 1]; empty: exactly one id a sample
  };
  size_t samples = 0;
  std::vector<Feature> features;
  // The part's candidates, which are ids of the layout's candidate feature. If counts_candidates is
  // true, each of them adds 1 to its key's count. If all parts of a batch have the same candidates,
  // only the first part counts them.
  absl::Span<const uint64_t> candidates;
  bool counts_candidates = true;
};

// Working memory for making plans, reused from plan to plan. For one thread at a time.
class PlanScratch {
 private:
  friend class PlanMaker;
  struct Occurrence {
    uint64_t key;
    uint32_t position;  // in LookupPlan::rows
    uint32_t sample;
  };
  std::vector<Occurrence> occurrences_;  // the ids of one table, sorted by partition
  std::vector<uint32_t> buckets_;
  std::vector<uint32_t> last_samples_;  // the last sample of each key found so far
};

struct LookupPlan {
  struct Table {
    std::vector<uint64_t> keys;
    // The number of the part's samples that have the key, plus the number of counted candidates
    // that have it.
    std::vector<uint32_t> counts;
    // The rows that are sent to the NN worker: those that ROWS features and candidates refer to.
    // `sent` lists them in ascending order, as indices into `keys`; it is empty if all keys are
    // sent.
    size_t num_sent = 0;
    std::vector<uint32_t> sent;
  };
  // The keys at [begin, end) of a table.
  struct KeyRange {
    size_t begin = 0;
    size_t end = 0;
    size_t size() const { return end - begin; }
  };

  size_t samples = 0;
  std::vector<Table> tables;  // as in the layout
  // An element for each id, feature after feature, then one for each candidate. For POOLED features
  // it is an index into `keys`; for ROWS features and candidates, an index into the sent rows.
  std::vector<uint32_t> rows;
  std::vector<size_t> feature_begins;  // [features + 1], in `rows`

  absl::Span<const uint32_t> RowsOf(int feature) const;
  absl::Span<const uint32_t> RowsOfCandidates() const;

  // The keys of `table` that belong to PS `ps` of `num_ps`.
  KeyRange KeyRangeOf(int table, int ps, int num_ps) const;

  // The number of ids, and the number of unique keys, of all tables.
  size_t NumIds() const { return rows.size(); }
  size_t NumKeys() const;

  // INVALID_ARGUMENT, naming the feature, if offsets are wrong or there are 2^32 ids or more. The
  // time is linear in the number of ids.
  static absl::StatusOr<LookupPlan> Make(const EmbeddingLayout& layout, const JaggedIds& ids,
                                         PlanScratch* scratch);
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_LOOKUP_PLAN_H_
