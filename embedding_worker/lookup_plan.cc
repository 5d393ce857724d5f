// The plan of a table is made in three passes over its ids. They are a radix sort with one digit,
// the partition:
//
//   count     ids of each partition
//   scatter   {key, position, sample} of each id to its partition, in order of occurrence
//   unify     within each partition, number the distinct keys as they occur, and note the number
//             at each id's position
//
// A partition has few ids (26 on average for 4096 x 26 ids in one table), so the third pass stays
// in the first-level cache.
//
// If a table has few ids, the counts of all partitions would cost more than everything else. Its
// ids are then sorted by insertion, which is stable and so gives the same order.

#include "embedding_worker/lookup_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/batch/pooling.h"
#include "common/numeric/hash.h"

namespace satrap {

namespace {

// If a partition has more ids than this, keys are found by hashing, otherwise by a linear search.
constexpr size_t kLinearIds = 16;

// A table with more ids than this is sorted by counting, otherwise by insertion.
constexpr size_t kInsertedIds = 64;

constexpr uint32_t kNoSample = std::numeric_limits<uint32_t>::max();

}  // namespace

class PlanMaker {
 public:
  PlanMaker(const EmbeddingLayout& layout, const JaggedIds& ids, PlanScratch* scratch,
            LookupPlan* plan)
      : layout_(layout), ids_(ids), scratch_(*scratch), plan_(*plan) {}

  void MakeTable(int table) {
    const EmbeddingLayout::Table& layout = layout_.tables[table];
    const size_t num_ids = NumIds(layout);
    if (scratch_.occurrences_.size() < num_ids) scratch_.occurrences_.resize(num_ids);
    if (num_ids <= kInsertedIds) {
      SortByInsertion(layout, num_ids);
      UnifyInserted(num_ids, &plan_.tables[table]);
    } else {
      SortByCounting(layout);
      UnifyCounted(num_ids, &plan_.tables[table]);
    }
    ChooseSent(table);
  }

 private:
  using Occurrence = PlanScratch::Occurrence;

  // Whether candidates belong to this group of features. They come after the features.
  bool HasCandidates(const std::vector<int>& group) const {
    return std::find(group.begin(), group.end(), layout_.candidate_feature) != group.end();
  }

  uint64_t IdSpaceOf(const std::vector<int>& group) const {
    return layout_.features[group.front()].id_space_hash;
  }

  size_t NumIds(const EmbeddingLayout::Table& table) const {
    size_t num_ids = 0;
    for (const std::vector<int>& group : table.id_spaces) {
      for (int feature : group) num_ids += ids_.features[feature].ids.size();
      if (HasCandidates(group)) num_ids += ids_.candidates.size();
    }
    return num_ids;
  }

  // Moves begins_[p] from the beginning of partition p to its end. UnifyCounted relies on that.
  void SortByCounting(const EmbeddingLayout::Table& table) {
    Count(table);
    Scatter(table, [this](uint64_t key) { return begins_[PartitionOf(key)]++; });
  }

  void SortByInsertion(const EmbeddingLayout::Table& table, size_t num_ids) {
    uint32_t next = 0;
    Scatter(table, [&next](uint64_t) { return next++; });
    Occurrence* const occurrences = scratch_.occurrences_.data();
    for (size_t i = 1; i < num_ids; ++i) {
      const Occurrence inserted = occurrences[i];
      size_t place = i;
      for (; place > 0; --place) {
        if (PartitionOf(occurrences[place - 1].key) <= PartitionOf(inserted.key)) break;
        occurrences[place] = occurrences[place - 1];
      }
      occurrences[place] = inserted;
    }
  }

  void Count(const EmbeddingLayout::Table& table) {
    begins_.fill(0);
    for (const std::vector<int>& group : table.id_spaces) {
      const uint64_t id_space_hash = IdSpaceOf(group);
      for (int feature : group) {
        for (uint64_t id : ids_.features[feature].ids)
          ++begins_[PartitionOf(KeyOf(id, id_space_hash))];
      }
      if (!HasCandidates(group)) continue;
      for (uint64_t id : ids_.candidates) ++begins_[PartitionOf(KeyOf(id, id_space_hash))];
    }
    uint32_t begin = 0;
    for (uint32_t& entry : begins_) begin += std::exchange(entry, begin);
  }

  // Visits the table's ids in order of occurrence. `place` returns the place for an id's occurrence
  // when called with its key.
  template <typename Place>
  void Scatter(const EmbeddingLayout::Table& table, Place place) {
    for (const std::vector<int>& group : table.id_spaces) {
      if (group.size() == 1) {
        ScatterSamples(group.front(), IdSpaceOf(group), 0, ids_.samples, place);
      } else {
        // Go sample by sample. If two features of a sample have the same key, the two
        // occurrences of this key are then adjacent and count only once.
        for (size_t s = 0; s < ids_.samples; ++s) {
          for (int feature : group) ScatterSamples(feature, IdSpaceOf(group), s, s + 1, place);
        }
      }
      if (HasCandidates(group)) ScatterCandidates(IdSpaceOf(group), place);
    }
  }

  // Each candidate counts as one more sample, or not at all (JaggedIds::counts_candidates).
  template <typename Place>
  void ScatterCandidates(uint64_t id_space_hash, Place& place) {
    const size_t first = plan_.feature_begins.back();
    for (size_t j = 0; j < ids_.candidates.size(); ++j) {
      const uint64_t key = KeyOf(ids_.candidates[j], id_space_hash);
      const uint32_t sample =
          ids_.counts_candidates ? static_cast<uint32_t>(ids_.samples + j) : kNoSample;
      scratch_.occurrences_[place(key)] = {key, static_cast<uint32_t>(first + j), sample};
    }
  }

  // Scatters the ids of one feature in the samples [from, to).
  template <typename Place>
  void ScatterSamples(int feature, uint64_t id_space_hash, size_t from, size_t to, Place& place) {
    const JaggedIds::Feature& jagged = ids_.features[feature];
    const uint32_t first = static_cast<uint32_t>(plan_.feature_begins[feature]);
    Occurrence* const occurrences = scratch_.occurrences_.data();
    for (size_t s = from; s < to; ++s) {
      const size_t begin = jagged.offsets.empty() ? s : jagged.offsets[s];
      const size_t end = jagged.offsets.empty() ? s + 1 : jagged.offsets[s + 1];
      for (size_t j = begin; j < end; ++j) {
        const uint64_t key = KeyOf(jagged.ids[j], id_space_hash);
        occurrences[place(key)] = {key, static_cast<uint32_t>(first + j), static_cast<uint32_t>(s)};
      }
    }
  }

  void UnifyCounted(size_t num_ids, LookupPlan::Table* table) {
    BeginKeys(num_ids, table);
    uint32_t num_keys = 0;
    uint32_t begin = 0;
    for (uint32_t end : begins_) {
      num_keys = UnifyPartition(begin, end, num_keys, table);
      begin = end;
    }
    EndKeys(num_ids, num_keys, table);
  }

  void UnifyInserted(size_t num_ids, LookupPlan::Table* table) {
    BeginKeys(num_ids, table);
    const std::vector<Occurrence>& occurrences = scratch_.occurrences_;
    uint32_t num_keys = 0;
    for (uint32_t begin = 0, end = 0; begin < num_ids; begin = end) {
      const int partition = PartitionOf(occurrences[begin].key);
      for (end = begin + 1; end < num_ids && PartitionOf(occurrences[end].key) == partition;) ++end;
      num_keys = UnifyPartition(begin, end, num_keys, table);
    }
    EndKeys(num_ids, num_keys, table);
  }

  // Makes room for as many keys as there are ids.
  void BeginKeys(size_t num_ids, LookupPlan::Table* table) {
    table->keys.resize(num_ids);
    table->counts.resize(num_ids);
    if (scratch_.last_samples_.size() < num_ids) scratch_.last_samples_.resize(num_ids);
  }

  static void EndKeys(size_t num_ids, uint32_t num_keys, LookupPlan::Table* table) {
    table->keys.resize(num_keys);
    table->counts.resize(num_keys);
    // If there were many duplicates, return their memory now, because the plan is kept until the
    // part's gradients are applied.
    if (num_keys < num_ids / 2) {
      table->keys.shrink_to_fit();
      table->counts.shrink_to_fit();
    }
  }

  // Numbers the keys of the partition whose occurrences are at [begin, end). Returns the new number
  // of keys.
  uint32_t UnifyPartition(uint32_t begin, uint32_t end, uint32_t num_keys,
                          LookupPlan::Table* table) {
    return end - begin <= kLinearIds ? UnifyFew(begin, end, num_keys, table)
                                     : UnifyMany(begin, end, num_keys, table);
  }

  // Records that the key of `occurrence` is key number `row`; if `row` == `num_keys`, it is a new
  // key. Returns the new number of keys.
  uint32_t Note(const Occurrence& occurrence, uint32_t row, uint32_t num_keys,
                LookupPlan::Table* table) {
    plan_.rows[occurrence.position] = row;
    if (row == num_keys) {
      table->keys[row] = occurrence.key;
      table->counts[row] = 0;
      scratch_.last_samples_[row] = kNoSample;
      ++num_keys;
    }
    // Count samples, not ids. A key's occurrences in the same sample come one after another.
    const bool counts =
        scratch_.last_samples_[row] != occurrence.sample && occurrence.sample != kNoSample;
    table->counts[row] += counts ? 1 : 0;
    scratch_.last_samples_[row] = occurrence.sample;
    return num_keys;
  }

  // For few ids a linear search is cheaper than a hash table.
  uint32_t UnifyFew(uint32_t begin, uint32_t end, uint32_t num_keys, LookupPlan::Table* table) {
    const uint32_t first_key = num_keys;
    for (uint32_t i = begin; i < end; ++i) {
      const Occurrence& occurrence = scratch_.occurrences_[i];
      uint32_t row = first_key;
      while (row < num_keys && table->keys[row] != occurrence.key) ++row;
      num_keys = Note(occurrence, row, num_keys, table);
    }
    return num_keys;
  }

  // A hash table with open addressing and linear probing. A bucket holds a key's number plus one; 0
  // means that it is free.
  uint32_t UnifyMany(uint32_t begin, uint32_t end, uint32_t num_keys, LookupPlan::Table* table) {
    size_t num_buckets = 2 * kLinearIds;
    while (num_buckets < 2 * static_cast<size_t>(end - begin)) num_buckets *= 2;
    if (scratch_.buckets_.size() < num_buckets) scratch_.buckets_.resize(num_buckets);
    uint32_t* const buckets = scratch_.buckets_.data();
    std::fill_n(buckets, num_buckets, 0);
    for (uint32_t i = begin; i < end; ++i) {
      const Occurrence& occurrence = scratch_.occurrences_[i];
      size_t bucket = occurrence.key & (num_buckets - 1);
      while (buckets[bucket] != 0 && table->keys[buckets[bucket] - 1] != occurrence.key)
        bucket = (bucket + 1) & (num_buckets - 1);
      if (buckets[bucket] == 0) buckets[bucket] = num_keys + 1;
      num_keys = Note(occurrence, buckets[bucket] - 1, num_keys, table);
    }
    return num_keys;
  }

  // If POOLED and ROWS features share the table, only the rows of the ROWS features are sent, and
  // the entries of their ids become indices into the sent rows.
  void ChooseSent(int index) {
    const EmbeddingLayout::Table& layout = layout_.tables[index];
    LookupPlan::Table& table = plan_.tables[index];
    if (!layout.has_rows) return;
    if (!layout.has_pooled) {
      table.num_sent = table.keys.size();
      return;
    }
    std::vector<uint32_t> place(table.keys.size(), 0);
    ForEachRowsFeature(layout, [&](uint32_t& row) { place[row] = 1; });
    for (uint32_t row = 0; row < place.size(); ++row) {
      if (place[row] == 0) continue;
      place[row] = static_cast<uint32_t>(table.sent.size());
      table.sent.push_back(row);
    }
    ForEachRowsFeature(layout, [&](uint32_t& row) { row = place[row]; });
    table.num_sent = table.sent.size();
    if (table.num_sent == table.keys.size()) table.sent.clear();
  }

  template <typename Visit>
  void ForEachRowsFeature(const EmbeddingLayout::Table& layout, Visit visit) {
    for (const std::vector<int>& group : layout.id_spaces) {
      for (int feature : group) {
        if (layout_.features[feature].pooled) continue;
        for (size_t i = plan_.feature_begins[feature]; i < plan_.feature_begins[feature + 1]; ++i)
          visit(plan_.rows[i]);
      }
      if (!HasCandidates(group)) continue;
      for (size_t i = plan_.feature_begins.back(); i < plan_.rows.size(); ++i) visit(plan_.rows[i]);
    }
  }

  const EmbeddingLayout& layout_;
  const JaggedIds& ids_;
  PlanScratch& scratch_;
  LookupPlan& plan_;
  std::array<uint32_t, kNumPartitions> begins_;
};

absl::StatusOr<LookupPlan> LookupPlan::Make(const EmbeddingLayout& layout, const JaggedIds& ids,
                                            PlanScratch* scratch) {
  if (ids.features.size() != layout.features.size()) {
    return absl::InvalidArgumentError(absl::StrCat("features: the message has ",
                                                   ids.features.size(), ", but the job has ",
                                                   layout.features.size()));
  }
  LookupPlan plan;
  plan.samples = ids.samples;
  plan.feature_begins.push_back(0);
  for (size_t f = 0; f < ids.features.size(); ++f) {
    RETURN_IF_ERROR(
        CheckOffsets(ids.features[f].offsets, ids.samples, ids.features[f].ids.size(),
                     absl::StrCat("features[", f, "] (", layout.features[f].name, ")")));
    plan.feature_begins.push_back(plan.feature_begins.back() + ids.features[f].ids.size());
  }
  const size_t candidates = ids.candidates.size();
  if (plan.feature_begins.back() + candidates >= kNoSample ||
      ids.samples + candidates >= kNoSample) {
    return absl::InvalidArgumentError("features: 2^32 ids or more in one part");
  }
  CHECK(candidates == 0 || layout.candidate_feature >= 0);
  plan.rows.resize(plan.feature_begins.back() + candidates);
  plan.tables.resize(layout.tables.size());
  PlanMaker maker(layout, ids, scratch, &plan);
  for (size_t t = 0; t < layout.tables.size(); ++t) maker.MakeTable(static_cast<int>(t));
  return plan;
}

absl::Span<const uint32_t> LookupPlan::RowsOf(int feature) const {
  const size_t begin = feature_begins[feature];
  return absl::Span<const uint32_t>(rows.data() + begin, feature_begins[feature + 1] - begin);
}

absl::Span<const uint32_t> LookupPlan::RowsOfCandidates() const {
  return absl::MakeConstSpan(rows).subspan(feature_begins.back());
}

LookupPlan::KeyRange LookupPlan::KeyRangeOf(int table, int ps, int num_ps) const {
  CHECK(ps >= 0 && ps < num_ps);
  const std::vector<uint64_t>& keys = tables[table].keys;
  const auto begin_of = [&](int ps) {
    return static_cast<size_t>(
        std::partition_point(
            keys.begin(), keys.end(),
            [&](uint64_t key) { return PsOfPartition(PartitionOf(key), num_ps) < ps; }) -
        keys.begin());
  };
  return {begin_of(ps), begin_of(ps + 1)};
}

size_t LookupPlan::NumKeys() const {
  size_t num_keys = 0;
  for (const Table& table : tables) num_keys += table.keys.size();
  return num_keys;
}

}  // namespace satrap
