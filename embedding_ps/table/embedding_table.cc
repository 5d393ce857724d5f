#include "embedding_ps/table/embedding_table.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/ranges.h"
#include "common/numeric/hash.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<EmbeddingTable>> EmbeddingTable::Create(const TableConfig& config,
                                                                       const Options& options) {
  Problems problems;
  problems.Range("shards", options.shards, 1, kMaxShards);
  problems.Range<int64_t>("reserve_rows", options.reserve_rows, 0,
                          std::numeric_limits<int64_t>::max());
  RETURN_IF_ERROR(problems.First());
  ASSIGN_OR_RETURN(RowUpdater updater,
                   RowUpdater::Create(config, options.seed, options.new_optimizer));
  return std::unique_ptr<EmbeddingTable>(new EmbeddingTable(config, options, std::move(updater)));
}

EmbeddingTable::EmbeddingTable(const TableConfig& config, const Options& options,
                               RowUpdater updater)
    : config_(config), updater_(std::move(updater)) {
  // Keys spread over shards like balls over bins, so some shards hold a little more than the mean.
  const int64_t mean_rows = options.reserve_rows / options.shards;
  const size_t shard_rows = static_cast<size_t>(mean_rows + mean_rows / 32);
  for (int i = 0; i < options.shards; ++i) {
    const double phase = static_cast<double>(i) / options.shards;
    shards_.push_back(std::make_unique<TableShard>(&updater_, shard_rows, phase));
  }
  for (int partition = 0; partition < kNumPartitions; ++partition) {
    shard_of_partition_.push_back(static_cast<uint16_t>(partition % options.shards));
  }
}

template <typename Visitor>
void EmbeddingTable::ForEachShard(absl::Span<const uint64_t> keys, Visitor visit) const {
  // A counting sort of the positions by shard. places[i] is first the number of keys of shard i,
  // then the start of its positions, and once all are written their end.
  absl::InlinedVector<uint32_t, 64> places_memory(shards_.size());
  const absl::Span<uint32_t> places = absl::MakeSpan(places_memory);
  for (const uint64_t key : keys) ++places[shard_of_partition_[PartitionOf(key)]];
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
  CHECK(gradients.size() == keys.size() * layout().num_values()) << gradients.size();
  CHECK(sample_counts.size() == keys.size() || (sample_counts.empty() && !needs_sample_counts()))
      << sample_counts.size();
  CHECK(context.normalizer > 0) << context.normalizer;
  int64_t created = 0;
  // One Step for all shards: they are visited one after another on this thread.
  RowUpdater::Step step(updater_, context);
  ForEachShard(keys, [&](TableShard& shard, absl::Span<const uint32_t> positions) {
    created += shard.Update(keys, positions, gradients.data(), sample_counts, &step);
  });
  return created;
}

int64_t EmbeddingTable::CreateRows(absl::Span<const uint64_t> keys) {
  int64_t created = 0;
  ForEachShard(keys, [&](TableShard& shard, absl::Span<const uint32_t> positions) {
    created += shard.CreateRows(keys, positions);
  });
  return created;
}

std::vector<uint64_t> EmbeddingTable::Keys(int first_partition, int last_partition) const {
  std::vector<uint64_t> keys;
  for (const auto& shard : shards_) shard->AppendKeys(first_partition, last_partition, &keys);
  std::sort(keys.begin(), keys.end());
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
