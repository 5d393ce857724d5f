// Loading saved rows (save_tables.h has the format) on any number of embedding PSs.

#ifndef SATRAP_EMBEDDING_PS_CHECKPOINT_LOAD_TABLES_H_
#define SATRAP_EMBEDDING_PS_CHECKPOINT_LOAD_TABLES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "embedding_ps/table/embedding_table.h"

namespace satrap {

// Replaces the rows of `tables` by those of the model in `directory` that PS `ps_index` of `num_ps`
// owns.
//
// NOT_FOUND if the directory holds no complete model; FAILED_PRECONDITION if a table is missing
// from the model or has another fingerprint; DATA_LOSS, naming file and offset, if a file is
// missing, truncated or damaged, or naming the file if it is intact but belongs to another save.
// After an error the tables are empty or partly filled, and no Update may build on them. A Lookup
// that runs meanwhile finds some of the rows or none. REQUIRES: no Update of the tables is running
absl::Status LoadTables(const std::string& directory, int ps_index, int num_ps,
                        absl::Span<EmbeddingTable* const> tables);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_CHECKPOINT_LOAD_TABLES_H_
