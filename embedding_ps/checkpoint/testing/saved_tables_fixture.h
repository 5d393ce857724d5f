// Helpers for tests of saved rows: saving and loading in the test's own thread.

#ifndef SATRAP_EMBEDDING_PS_CHECKPOINT_TESTING_SAVED_TABLES_FIXTURE_H_
#define SATRAP_EMBEDDING_PS_CHECKPOINT_TESTING_SAVED_TABLES_FIXTURE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "common/numeric/hash.h"
#include "common/testing/manual_executor.h"
#include "embedding_ps/checkpoint/cut_writer.h"
#include "embedding_ps/checkpoint/load_tables.h"

namespace satrap {

// Options of a table that holds the partitions of PS `ps` of `num_ps`.
inline EmbeddingTable::Options OptionsOfPs(int ps, int num_ps, int shards = 16) {
  EmbeddingTable::Options options;
  options.shards = shards;
  while (PsOfPartition(options.first_partition, num_ps) < ps) ++options.first_partition;
  while (PsOfPartition(options.last_partition, num_ps) > ps) --options.last_partition;
  return options;
}

inline CutWriter::Options WriterOf(const std::vector<EmbeddingTable*>& tables,
                                   const std::string& directory, Executor* executor,
                                   FileSystem* file_system = DiskFileSystem()) {
  CutWriter::Options options;
  options.tables = tables;
  options.directory = directory;
  options.copy_bytes = int64_t{1} << 40;
  options.threads = 3;
  options.executor = executor;
  options.file_system = file_system;
  return options;
}

inline CutWriter::Result SaveNow(const std::vector<EmbeddingTable*>& tables,
                                 const std::string& directory,
                                 FileSystem* file_system = DiskFileSystem()) {
  ManualExecutor executor;
  CutWriter::Result saved;
  int ended = 0;
  CutWriter::Mark(WriterOf(tables, directory, &executor, file_system))
      ->Start([&](const CutWriter::Result& result) {
        saved = result;
        ++ended;
      });
  executor.RunReady();
  CHECK(ended == 1) << ended;
  return saved;
}

inline LoadResult LoadNow(const std::vector<EmbeddingTable*>& tables, const std::string& directory,
                          FileSystem* file_system = DiskFileSystem(),
                          absl::optional<WarmStartConfig> warm_start = absl::nullopt) {
  ManualExecutor executor;
  LoadResult loaded;
  int ended = 0;
  LoadTables({tables, directory, /*threads=*/3, &executor, file_system, std::move(warm_start)},
             [&](const LoadResult& result) {
               loaded = result;
               ++ended;
             });
  executor.RunReady();
  CHECK(ended == 1) << ended;
  return loaded;
}

// A manifest that lists `tables` and their `files`.
inline CheckpointManifest ManifestOf(const std::vector<EmbeddingTable*>& tables,
                                     const std::vector<SavedFile>& files) {
  CheckpointManifest manifest;
  manifest.set_version(kManifestVersion);
  for (const EmbeddingTable* table : tables) {
    SavedTable* saved = manifest.add_tables();
    saved->set_name(table->config().name());
    saved->set_id(table->config().id());
    saved->set_fingerprint(TableFingerprint(table->config()));
    uint64_t rows = 0;
    for (const SavedFile& file : files) rows += file.table() == saved->id() ? file.rows() : 0;
    saved->set_rows(rows);
  }
  for (const SavedFile& file : files) *manifest.add_table_files() = file;
  return manifest;
}

// All rows of a table by key, each with its values and state.
using TableContent = std::map<uint64_t, std::vector<float>>;
inline TableContent ContentOf(const EmbeddingTable& table) {
  TableContent content;
  const size_t floats = table.layout().num_floats();
  const std::vector<uint64_t> keys = table.Keys(0, kNumPartitions - 1);
  std::vector<float> rows(keys.size() * floats);
  table.ReadRows(keys, absl::MakeSpan(rows));
  for (size_t i = 0; i < keys.size(); ++i) {
    content[keys[i]] = {rows.begin() + i * floats, rows.begin() + (i + 1) * floats};
  }
  return content;
}

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_CHECKPOINT_TESTING_SAVED_TABLES_FIXTURE_H_
