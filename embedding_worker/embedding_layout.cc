#include "embedding_worker/embedding_layout.h"

#include <utility>

#include "common/batch/transfer.h"
#include "common/config/candidates.h"
#include "common/config/job_facts.h"
#include "common/numeric/hash.h"

namespace satrap {

namespace {

// Adds feature `index` to the group of its id space, and makes that group if it does not exist.
void AddToIdSpace(const std::vector<EmbeddingLayout::Feature>& features, int index,
                  EmbeddingLayout::Table* table) {
  for (std::vector<int>& group : table->id_spaces) {
    if (features[group.front()].id_space_hash == features[index].id_space_hash) {
      group.push_back(index);
      return;
    }
  }
  table->id_spaces.push_back({index});
}

}  // namespace

EmbeddingLayout EmbeddingLayout::Make(const JobConfig& job) {
  EmbeddingLayout layout;
  for (const TableConfig& config : job.tables()) {
    Table table;
    table.id = config.id();
    table.row_values = static_cast<size_t>(RowValues(config));
    layout.tables.push_back(std::move(table));
  }
  for (const FeatureConfig& config : job.data().features()) {
    Feature feature;
    feature.name = config.name();
    feature.table = TableIndexOf(config, job);
    feature.id_space_hash = Xxh64(IdSpaceOf(config));
    feature.pooled = TransferOf(config, job) == FeatureConfig::POOLED;
    feature.pooling = config.pooling();
    layout.features.push_back(std::move(feature));

    Table& table = layout.tables[layout.features.back().table];
    (layout.features.back().pooled ? table.has_pooled : table.has_rows) = true;
    AddToIdSpace(layout.features, static_cast<int>(layout.features.size()) - 1, &table);
  }
  layout.candidate_feature = CandidateFeatureOf(job);
  return layout;
}

}  // namespace satrap
