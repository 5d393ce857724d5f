#include "embedding_ps/preload.h"

#include <cstdint>
#include <vector>

#include "common/config/job_facts.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

// Limits the memory for keys, because a feature may preload billions of ids.
constexpr size_t kKeysACall = 1 << 16;

void PreloadFeature(const FeatureConfig& feature, const JobConfig& job, int ps_index,
                    EmbeddingTable* table) {
  const uint64_t space = Xxh64(IdSpaceOf(feature));
  const int num_ps = job.embedding_ps().replicas();
  std::vector<uint64_t> keys;
  keys.reserve(kKeysACall);
  for (int64_t id = 0; id < feature.preload_ids(); ++id) {
    const uint64_t key = KeyOf(static_cast<uint64_t>(id), space);
    if (PsOfPartition(PartitionOf(key), num_ps) != ps_index) continue;
    keys.push_back(key);
    if (keys.size() < kKeysACall) continue;
    table->CreateRows(keys);
    keys.clear();
  }
  if (!keys.empty()) table->CreateRows(keys);
}

}  // namespace

void PreloadRows(const JobConfig& job, int ps_index, absl::Span<EmbeddingTable* const> tables) {
  for (const FeatureConfig& feature : job.data().features()) {
    if (feature.preload_ids() == 0) continue;
    PreloadFeature(feature, job, ps_index, tables[TableIndexOf(feature, job)]);
  }
}

}  // namespace satrap
