#include "embedding_ps/checkpoint/load_tables.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/config/warm_start.h"
#include "common/numeric/hash.h"
#include "common/thread/mutex.h"
#include "embedding_ps/checkpoint/row_conversion.h"
#include "embedding_ps/checkpoint/row_file.h"

namespace satrap {
namespace {

// Finds the model's table from which `table` is filled. Returns null, in a warm start only, if the
// model has no such table or the warm start does not take it.
absl::StatusOr<const SavedTable*> FindSavedTable(const LoadOptions& options,
                                                 const CheckpointManifest& manifest,
                                                 const EmbeddingTable& table) {
  const TableConfig& config = table.config();
  const bool warm = options.warm_start.has_value();
  if (warm && !TakesName(*options.warm_start, config.name())) return nullptr;
  for (const SavedTable& saved : manifest.tables()) {
    // A warm start matches tables by name, because users choose the names. Any other load matches
    // them by id, as the format does.
    if (warm ? saved.name() == config.name() : saved.id() == config.id()) return &saved;
  }
  if (warm) return nullptr;
  return absl::FailedPreconditionError(absl::StrCat("the model in ", options.directory,
                                                    " has no table '", config.name(), "' (id ",
                                                    config.id(), ")"));
}

absl::Status CheckRowCount(const CheckpointManifest& manifest, const SavedTable& saved,
                           const EmbeddingTable& table, const std::string& directory) {
  if (!saved.has_rows()) return absl::OkStatus();
  // A range without rows has no file, so only the sum of the rows shows that the list lacks a file.
  uint64_t rows = 0;
  for (const SavedFile& file : manifest.table_files()) {
    if (file.table() == saved.id()) rows += file.rows();
  }
  if (rows == saved.rows()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(directory, "/manifest: table '", table.config().name(),
                                          "' has ", Counted(saved.rows(), "row"),
                                          ", but its files have ", rows));
}

// The number of the model's steps in which the table was not frozen. The step numbers that rows
// keep count only these steps.
uint64_t OwnSteps(const CheckpointManifest& manifest, const SavedTable& saved) {
  for (const FrozenSteps& frozen : manifest.position().frozen_steps()) {
    if (frozen.table() != saved.id()) continue;
    return manifest.step() - std::min(frozen.steps(), manifest.step());
  }
  return manifest.step();
}

// One load. First come tasks that each read one part of a file into the arenas, then tasks that
// each index one shard of what was read. Both kinds are numbered and run in this order.
class Load : public std::enable_shared_from_this<Load> {
 public:
  Load(const LoadOptions& options, absl::AnyInvocable<void(const LoadResult&)> done)
      : options_(options), done_(std::move(done)) {}

  void Start() {
    Post([this] {
      result_.status = Prepare();
      if (!result_.status.ok()) return done_(result_);
      result_.replaced = true;
      for (const Taken& taken : taken_) taken.table->Clear();
      Begin(&Load::ReadFile, files_.size());
    });
  }

 private:
  struct Taken {
    EmbeddingTable* table;
    absl::optional<RowConversion> conversion;  // nullopt: the rows are stored as they are
  };
  struct File {
    EmbeddingTable* table;
    const RowConversion* conversion;  // may be null
    SavedFile saved;
    PartOfFile where;
    EmbeddingTable::Run run;
  };
  struct Shard {
    EmbeddingTable* table;
    int shard;
  };
  using Step = absl::Status (Load::*)(size_t i);

  template <typename Run>
  void Post(Run run) {
    options_.executor->Post([self = shared_from_this(), run = std::move(run)] { run(); });
  }

  // Finds the files to read, by table and partition.
  absl::Status Prepare() {
    ASSIGN_OR_RETURN(const CheckpointManifest manifest,
                     ReadManifest(options_.directory, options_.file_system));
    taken_.reserve(options_.tables.size());  // files point to its elements
    for (EmbeddingTable* table : options_.tables) {
      ASSIGN_OR_RETURN(const SavedTable* const saved, FindSavedTable(options_, manifest, *table));
      if (saved == nullptr) continue;
      RETURN_IF_ERROR(CheckRowCount(manifest, *saved, *table, options_.directory));
      ASSIGN_OR_RETURN(absl::optional<RowConversion> conversion,
                       ConversionOf(*saved, OwnSteps(manifest, *saved), *table));
      taken_.push_back({table, std::move(conversion)});
      RETURN_IF_ERROR(PrepareTable(manifest, *saved, taken_.back()));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<absl::optional<RowConversion>> ConversionOf(const SavedTable& saved,
                                                             uint64_t steps,
                                                             const EmbeddingTable& table) const {
    const TableConfig& config = table.config();
    const bool warm = options_.warm_start.has_value();
    const uint64_t fingerprint = saved.fingerprint();
    if (!warm && fingerprint == TableFingerprint(config)) return absl::nullopt;
    if (warm && !RowConversion::IsNeeded(table, fingerprint)) return absl::nullopt;
    auto conversion = warm ? RowConversion::Find(table, saved.id(), fingerprint, steps)
                           : RowConversion::OfFirstForm(table, fingerprint, steps);
    if (conversion.has_value()) return conversion;
    return absl::FailedPreconditionError(absl::StrCat(
        "table '", config.name(), "' (id ", saved.id(), ") in ", options_.directory,
        warm
            ? " has other segments or dims than this job's: leave it out with warm_start.only"
            : " has segments, dims, optimizers, l2_mode or semantics that differ from this job's"));
  }

  absl::Status PrepareTable(const CheckpointManifest& manifest, const SavedTable& saved_table,
                            const Taken& taken) {
    EmbeddingTable* const table = taken.table;
    // The model may have been saved by another number of PSs, so this PS reads every file whose
    // range overlaps its partitions.
    const std::vector<PartOfFile> parts = PartsOfFiles(manifest);
    std::map<uint32_t, int> by_partition;  // first partition -> index in table_files
    for (int i = 0; i < manifest.table_files_size(); ++i) {
      const SavedFile& saved = manifest.table_files(i);
      if (saved.table() != saved_table.id()) continue;
      if (static_cast<int>(saved.first_partition()) > table->last_partition() ||
          static_cast<int>(saved.last_partition()) < table->first_partition()) {
        continue;
      }
      if (!by_partition.emplace(saved.first_partition(), i).second) {
        return absl::DataLossError(absl::StrCat(options_.directory, "/manifest: ", saved.name(),
                                                " begins at the same partition as another file of "
                                                "the same table"));
      }
    }
    const RowConversion* const conversion =
        taken.conversion.has_value() ? &*taken.conversion : nullptr;
    for (const auto& [first, i] : by_partition) {
      files_.push_back({table, conversion, manifest.table_files(i), parts[i], {}});
    }
    for (int i = 0; i < table->num_shards(); ++i) shards_.push_back({table, i});
    return absl::OkStatus();
  }

  // Runs step(0) to step(n - 1), `threads` at a time, then End.
  void Begin(Step step, size_t n) {
    step_ = step;
    const size_t workers =
        std::max<size_t>(1, std::min(n, static_cast<size_t>(std::max(options_.threads, 1))));
    {
      MutexLock lock(&mutex_);
      next_ = 0;
      end_ = n;
      workers_ = workers;
    }
    for (size_t i = 0; i < workers; ++i) Post([this] { Work(); });
  }

  void Work() {
    size_t i;
    bool ended;
    {
      MutexLock lock(&mutex_);
      ended = next_ == end_ || !result_.status.ok();
      if (ended && --workers_ > 0) return;
      i = next_;
      if (!ended) ++next_;
    }
    if (ended) return End();
    const absl::Status status = (this->*step_)(i);
    if (!status.ok()) {
      MutexLock lock(&mutex_);
      if (result_.status.ok()) result_.status = status;
    }
    Post([this] { Work(); });
  }

  // Called when the last worker has ended, so nothing else runs at the same time.
  void End() {
    if (result_.status.ok() && step_ == &Load::ReadFile) {
      return Begin(&Load::IndexShard, shards_.size());
    }
    if (!result_.status.ok()) {
      for (EmbeddingTable* table : options_.tables) table->Clear();
    }
    done_(result_);
  }

  absl::Status ReadFile(size_t i) {
    EmbeddingTable* const table = files_[i].table;
    const RowConversion* const conversion = files_[i].conversion;
    const RowFormat format = conversion != nullptr ? conversion->format() : RowFormatOf(*table);
    const size_t floats = format.num_floats;
    return ReadRowFile(options_.directory, files_[i].saved, files_[i].where, format,
                       options_.file_system,
                       [&](absl::Span<const uint64_t> keys, absl::Span<const float> rows) {
                         // The table's partitions are one range, and the keys ascend. So the rows
                         // to take are one range, too.
                         size_t begin = 0, end = keys.size();
                         while (begin < end && PartitionOf(keys[begin]) < table->first_partition())
                           ++begin;
                         while (begin < end && PartitionOf(keys[end - 1]) > table->last_partition())
                           --end;
                         rows = rows.subspan(begin * floats, (end - begin) * floats);
                         std::vector<float> converted;
                         if (conversion != nullptr) {
                           converted = conversion->Convert(rows);
                           rows = converted;
                         }
                         table->AppendRows(keys.subspan(begin, end - begin), rows, &files_[i].run);
                       });
  }

  absl::Status IndexShard(size_t i) {
    std::vector<const EmbeddingTable::Run*> runs;
    for (const File& file : files_) {
      if (file.table == shards_[i].table) runs.push_back(&file.run);
    }
    if (shards_[i].table->IndexShard(shards_[i].shard, runs).ok()) {
      // Frees 16 bytes per row, which would otherwise be held until the last shard is indexed.
      for (File& file : files_) {
        if (file.table == shards_[i].table && !file.run.empty()) {
          std::vector<TableShard::AppendedRow>().swap(file.run[shards_[i].shard]);
        }
      }
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat(options_.directory,
                                            "/manifest: the partitions of two files of table ",
                                            shards_[i].table->config().name(), " overlap"));
  }

  const LoadOptions options_;
  absl::AnyInvocable<void(const LoadResult&)> done_;
  std::vector<Taken> taken_;
  std::vector<File> files_;
  std::vector<Shard> shards_;
  Step step_ = nullptr;

  Mutex mutex_;
  size_t next_ GUARDED_BY(mutex_) = 0;
  size_t end_ GUARDED_BY(mutex_) = 0;
  size_t workers_ GUARDED_BY(mutex_) = 0;  // how many have not ended
  // Written under mutex_ while workers run.
  LoadResult result_;
};

}  // namespace

void LoadTables(const LoadOptions& options, absl::AnyInvocable<void(const LoadResult&)> done) {
  std::make_shared<Load>(options, std::move(done))->Start();
}

}  // namespace satrap
