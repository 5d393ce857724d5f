// Loading the saved rows of a cut or model (row_file.h) on any number of embedding PSs.

#ifndef SATRAP_EMBEDDING_PS_CHECKPOINT_LOAD_TABLES_H_
#define SATRAP_EMBEDDING_PS_CHECKPOINT_LOAD_TABLES_H_

#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/file/file_system.h"
#include "common/thread/executor.h"
#include "embedding_ps/table/embedding_table.h"
#include "proto/job.pb.h"

namespace satrap {

struct LoadOptions {
  std::vector<EmbeddingTable*> tables;
  std::string directory;  // of a manifest
  int threads = 1;        // files read at the same time
  Executor* executor = nullptr;
  FileSystem* file_system = nullptr;
  // If given, each table that it selects by name gets the rows of the model's table of that name,
  // if the model has one; all other tables stay as they are. Rows saved with another optimizer are
  // converted (row_conversion.h). If absent, the model must have all tables, with equal rows.
  absl::optional<WarmStartConfig> warm_start = absl::nullopt;
};

struct LoadResult {
  // NOT_FOUND if the directory holds no complete model; FAILED_PRECONDITION if a table is missing
  // from the model or has another fingerprint (in a warm start: other segments); DATA_LOSS, naming
  // the manifest, if its files do not have the rows of the tables; DATA_LOSS, naming file and
  // offset, if a file is missing, truncated or damaged; DATA_LOSS, naming the file, if it is intact
  // but belongs to another save.
  absl::Status status;
  // Whether rows from before the load are gone. If they are and `status` is an error, the tables
  // are empty, and no Update may build on them.
  bool replaced = false;
};

// Replaces the rows of `tables` by those of the model that they may hold (their partitions), and
// calls `done`, once, in a task of the executor. Files are read side by side, each by one task;
// tasks never wait for each other. Nothing is owned; all must outlive the call to `done`. A Lookup
// that runs meanwhile finds all rows of a shard or none.
// REQUIRES: until `done`, nothing else changes the tables
void LoadTables(const LoadOptions& options, absl::AnyInvocable<void(const LoadResult&)> done);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_CHECKPOINT_LOAD_TABLES_H_
