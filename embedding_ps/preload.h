// Creates rows before training begins: those of ids 0 to FeatureConfig.preload_ids - 1.

#ifndef SATRAP_EMBEDDING_PS_PRELOAD_H_
#define SATRAP_EMBEDDING_PS_PRELOAD_H_

#include "absl/types/span.h"
#include "embedding_ps/table/embedding_table.h"
#include "proto/job.pb.h"

namespace satrap {

// Creates the preloaded rows that embedding PS `ps_index` of the job owns, with their initial
// values. Existing rows are not changed. `tables` are in the order of JobConfig.tables.
// Thread-safe.
void PreloadRows(const JobConfig& job, int ps_index, absl::Span<EmbeddingTable* const> tables);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_PRELOAD_H_
