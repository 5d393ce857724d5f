#include "embedding_ps/table/embedding_table.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/setting_ranges.h"
#include "common/numeric/hash.h"
#include "embedding_ps/table/step_of_table.h"
#include "proto/job.pb.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<EmbeddingTable>> EmbeddingTable::Create(const TableConfig& config,
                                                                       const Options& options) {
  Problems problems;
  EmbeddingPsConfig of_job;
  of_job.set_shards(options.shards);
  CheckRanges(of_job, "", &problems);
  problems.Range<int64_t>("reserve_rows", options.reserve_rows, 0,
                          std::numeric_limits<int64_t>::max());
  problems.Range("first_partition", options.first_partition, 0, kNumPartitions - 1);
  problems.Range<int64_t>("frozen_steps", options.frozen_steps, 0, options.first_step);
  problems.Range("last_partition", options.last_partition, options.first_partition,
                 kNumPartitions - 1);
  RETURN_IF_ERROR(problems.First());
  ASSIGN_OR_RETURN(RowUpdater updater,
                   RowUpdater::Create(config, options.seed, options.new_optimizer));
  return std::unique_ptr<EmbeddingTable>(new EmbeddingTable(config, options, std::move(updater)));
}

EmbeddingTable::EmbeddingTable(const TableConfig& config, const Options& options,
                               RowUpdater updater)
    : config_(config),
      updater_(std::move(updater)),
      first_step_(options.first_step),
      frozen_steps_(options.frozen_steps),
      first_partition_(options.first_partition),
      last_partition_(options.last_partition),
      shard_of_partition_(kNumPartitions, static_cast<uint16_t>(options.shards)) {
  // Keys are distributed over shards at random, so some shards hold a little more than the mean.
  const int64_t mean_rows = options.reserve_rows / options.shards;
  const size_t shard_rows = static_cast<size_t>(mean_rows + mean_rows / 32);
  const int owned = last_partition_ - first_partition_ + 1;
  for (int i = 0; i < options.shards; ++i) {
    const double phase = static_cast<double>(i) / options.shards;
    // Shard i gets every options.shards-th partition, from the i-th on.
    const int partitions = (owned - i + options.shards - 1) / options.shards;
    const KeyOrder order(first_partition_ + i, options.shards, std::max(partitions, 0));
    shards_.push_back(std::make_unique<TableShard>(&updater_, order, shard_rows, phase));
  }
  for (int i = 0, shard = 0; i < owned; ++i) {
    shard_of_partition_[first_partition_ + i] = static_cast<uint16_t>(shard);
    if (++shard == options.shards) shard = 0;
  }
}

template <typename Visitor>
void EmbeddingTable::ForEachShard(absl::Span<const uint64_t> keys, Visitor visit) const {
  // Sorts the positions by shard with a counting sort. places[i] is first the number of keys of
  // shard i. Then it is the start of the shard's positions, and after all positions are written,
  // their end.
  absl::InlinedVector<uint32_t, 64> places_memory(shards_.size() + 1);
  const absl::Span<uint32_t> places = absl::MakeSpan(places_memory);
  for (const uint64_t key : keys) ++places[shard_of_partition_[PartitionOf(key)]];
  CHECK(places.back() == 0)
      << "some keys belong to partitions that this process does not hold for table "
      << config_.name();
  uint32_t begin = 0;
  for (uint32_t& place : places) begin += std::exchange(place, begin);
  const auto positions = std::make_unique_for_overwrite<uint32_t[]>(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    positions[places[shard_of_partition_[PartitionOf(keys[i])]]++] = static_cast<uint32_t>(i);
  }
  begin = 0;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const uint32_t end = places[i];
    if (end > begin) {
      visit(*shards_[i], absl::MakeConstSpan(positions.get() + begin, end - begin));
    }
    begin = end;
  }
}

void EmbeddingTable::Lookup(absl::Span<const uint64_t> keys, AbsentRows mode,
                            absl::Span<float> values, absl::Span<uint8_t> presence) const {
  CHECK(values.size() == keys.size() * layout().num_values()) << values.size();
  CHECK(presence.size() == (keys.size() + 7) / 8) << presence.size();
  std::fill(presence.begin(), presence.end(), uint8_t{0});
  ForEachShard(keys, [&](const TableShard& shard, absl::Span<const uint32_t> positions) {
    shard.Lookup(keys, positions, mode, values.data(), presence.data());
  });
}

int64_t EmbeddingTable::Update(absl::Span<const uint64_t> keys, absl::Span<const float> gradients,
                               absl::Span<const uint32_t> sample_counts,
                               const StepContext& context) {
  return StepOfTable(this, context).Add(keys, gradients, sample_counts);
}

int64_t EmbeddingTable::VisitRows(absl::Span<const uint64_t> keys,
                                  absl::Span<const float> gradients,
                                  absl::Span<const uint32_t> sample_counts,
                                  RowUpdater::Step* step) {
  int64_t created = 0;
  // One Step serves all shards, because they are visited one after another on this thread.
  ForEachShard(keys, [&](TableShard& shard, absl::Span<const uint32_t> positions) {
    created += shard.VisitRows(keys, positions, gradients.data(), sample_counts, step);
  });
  return created;
}

int64_t EmbeddingTable::CreateRows(absl::Span<const uint64_t> keys) {
  int64_t created = 0;
  // New rows are aged to the table's current step. A frozen table takes no step after first_step_.
  const RowUpdater::Step step(updater_, StepContext(), OwnStep(first_step_));
  ForEachShard(keys, [&](TableShard& shard, absl::Span<const uint32_t> positions) {
    created += shard.CreateRows(keys, positions, step);
  });
  return created;
}

std::vector<uint64_t> EmbeddingTable::Keys(int first_partition, int last_partition) const {
  std::vector<uint64_t> keys;
  first_partition = std::max(first_partition, first_partition_);
  last_partition = std::min(last_partition, last_partition_);
  for (int partition = first_partition; partition <= last_partition; ++partition) {
    shards_[shard_of_partition_[partition]]->AppendKeys(NthInShard(partition), &keys);
  }
  return keys;
}

void EmbeddingTable::ReadRows(absl::Span<const uint64_t> keys, absl::Span<float> rows) const {
  CHECK(rows.size() == keys.size() * layout().num_floats()) << rows.size();
  ForEachShard(keys, [&](const TableShard& shard, absl::Span<const uint32_t> positions) {
    shard.ReadRows(keys, positions, rows.data());
  });
}

void EmbeddingTable::WriteRows(absl::Span<const uint64_t> keys, absl::Span<const float> rows) {
  CHECK(rows.size() == keys.size() * layout().num_floats()) << rows.size();
  ForEachShard(keys, [&](TableShard& shard, absl::Span<const uint32_t> positions) {
    shard.WriteRows(keys, positions, rows.data());
  });
}

void EmbeddingTable::Clear() {
  for (const auto& shard : shards_) shard->Clear();
}

uint64_t EmbeddingTable::BeginCut(const std::shared_ptr<CopyBudget>& budget) {
  const uint64_t cut = ++last_cut_;
  for (const auto& shard : shards_) shard->BeginCut(cut, budget);
  return cut;
}

CutRead EmbeddingTable::ReadCut(uint64_t cut, int partition, size_t max_rows, uint64_t* keys,
                                float* rows, size_t* num_rows) {
  TableShard& shard = *shards_[shard_of_partition_[partition]];
  return shard.ReadCut(cut, NthInShard(partition), max_rows, keys, rows, num_rows);
}

void EmbeddingTable::EndCut(uint64_t cut) {
  for (const auto& shard : shards_) shard->EndCut(cut);
}

void EmbeddingTable::AppendRows(absl::Span<const uint64_t> keys, absl::Span<const float> rows,
                                Run* run) {
  const size_t num_floats = layout().num_floats();
  CHECK(rows.size() == keys.size() * num_floats) << rows.size();
  run->resize(shards_.size());
  // Keys ascend, so the keys of one partition, and thus of one shard, are adjacent.
  for (size_t begin = 0, end; begin < keys.size(); begin = end) {
    const int partition = PartitionOf(keys[begin]);
    for (end = begin + 1; end < keys.size() && PartitionOf(keys[end]) == partition;) ++end;
    const uint16_t shard = shard_of_partition_[partition];
    CHECK(shard < shards_.size()) << "partition " << partition;
    shards_[shard]->AppendRows(keys.subspan(begin, end - begin), rows.data() + begin * num_floats,
                               &(*run)[shard]);
  }
}

absl::Status EmbeddingTable::IndexShard(int shard, absl::Span<const Run* const> runs) {
  std::vector<absl::Span<const TableShard::AppendedRow>> of_shard;
  for (const Run* run : runs) {
    if (!run->empty()) of_shard.push_back((*run)[shard]);
  }
  if (shards_[shard]->IndexRows(of_shard)) return absl::OkStatus();
  return absl::InvalidArgumentError("the keys do not ascend");
}

int64_t EmbeddingTable::rows() const {
  int64_t rows = 0;
  for (const auto& shard : shards_) rows += shard->rows();
  return rows;
}

int64_t EmbeddingTable::bytes() const {
  int64_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->bytes();
  return bytes;
}

}  // namespace satrap
