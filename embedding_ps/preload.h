// Rows that exist before training begins: those of the ids that FeatureConfig.preload_ids names.

#ifndef SATRAP_EMBEDDING_PS_PRELOAD_H_
#define SATRAP_EMBEDDING_PS_PRELOAD_H_

#include "absl/types/span.h"
#include "embedding_ps/table/embedding_table.h"
#include "proto/job.pb.h"

namespace satrap {

// Makes those rows that embedding PS `ps_index` of the job owns, with their initial values; rows
// that exist stay as they are. `tables` are in the order of JobConfig.tables.
void PreloadRows(const JobConfig& job, int ps_index, absl::Span<EmbeddingTable* const> tables);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_PRELOAD_H_
