// Loads the saved rows of a cut or model (row_file.h) on any number of embedding PSs.

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
  // If given, it selects some of `tables` by name. Each selected table gets the rows of the model's
  // table with the same name, if the model has one. All other tables stay unchanged. Rows that were
  // saved with another optimizer are converted (row_conversion.h). If absent, the model must have
  // all tables, with rows of the same segments and optimizers; only rows in the form of an older
  // build are converted (row_form.h).
  absl::optional<WarmStartConfig> warm_start = absl::nullopt;
};

struct LoadResult {
  //   NOT_FOUND            the directory holds no complete model
  //   FAILED_PRECONDITION  a table is missing from the model or has another fingerprint (in a warm
  //                        start: other segments)
  //   DATA_LOSS            the files listed do not have all rows of a table (names the manifest); a
  //                        file is missing, truncated or damaged (names file and offset); or a file
  //                        is intact but belongs to another save (names the file)
  absl::Status status;
  // Whether the load has removed the rows that the tables had before. If it has, and `status` is an
  // error, the tables are empty, and no Update may be applied to them.
  bool replaced = false;
};

// Replaces the rows of `tables` by those of the model's rows whose partitions the tables may hold.
// Calls `done` once, in a task of the executor. Up to `threads` parts of files are read at the same
// time, each part by one task. Tasks never wait for each other. A Lookup that runs meanwhile finds
// either all rows of a shard or none. Nothing that is passed in is owned; all of it must outlive
// the call to `done`. REQUIRES: until `done`, nothing else changes the tables
void LoadTables(const LoadOptions& options, absl::AnyInvocable<void(const LoadResult&)> done);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_CHECKPOINT_LOAD_TABLES_H_
