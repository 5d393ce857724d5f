// The job's features and tables, resolved once: which table a feature reads, how its ids become
// keys, and whether the embedding worker or the NN worker pools it. Plans and answers are made from
// this.
//
// Immutable: safe to read from many threads.

#ifndef SATRAP_EMBEDDING_WORKER_EMBEDDING_LAYOUT_H_
#define SATRAP_EMBEDDING_WORKER_EMBEDDING_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace satrap {

struct EmbeddingLayout {
  struct Feature {
    std::string name;
    int table = 0;  // index in `tables`
    uint64_t id_space_hash = 0;
    bool pooled = false;  // TransferOf: POOLED, not ROWS
    FeatureConfig::Pooling pooling = FeatureConfig::SUM;
  };
  struct Table {
    uint32_t id = 0;  // TableConfig.id
    size_t row_values = 0;
    // The table's features, grouped by id space: features of the same group share rows. The groups
    // are in the order of their first features.
    std::vector<std::vector<int>> id_spaces;
    bool has_rows = false;    // some feature of the table is sent as ROWS
    bool has_pooled = false;  // some feature of the table is POOLED
  };

  // The feature whose items are candidates (CandidatesConfig): a ROWS feature with one id per
  // sample; -1 if there is none.
  int candidate_feature = -1;
  std::vector<Feature> features;  // in the order of DataConfig.features
  std::vector<Table> tables;      // in the order of JobConfig.tables

  // REQUIRES: a validated job (common/config/validate/validate_job.h)
  static EmbeddingLayout Make(const JobConfig& job);
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_EMBEDDING_LAYOUT_H_
