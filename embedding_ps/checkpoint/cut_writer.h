// A CutWriter marks the rows of all tables of an embedding PS and writes the content of that moment
// to files, while the tables continue to change.
//
//   const auto writer = CutWriter::Mark(options);      // the mark; returns at once
//   writer->Start([](const CutWriter::Result& result) { ... });
//
// The files have the format of row_file.h. A table has one file for each aligned range of
// kPartitionsPerFile partitions in which it has rows. A range is shortened to the partitions that
// the table may hold. If this rule would give more than kMostFilesOfPs files, a file holds several
// ranges as its parts, even ranges of different tables, and a table with few rows becomes one
// range. So a cut of 500 small tables does not have 8,000 files.
//
// Up to `threads` files are written at the same time. Each task writes only one block, so other
// tasks get their turn even if the executor has a single thread. A shard's lock is held only while
// some hundred rows are copied. As far as possible, files are synced only after all rows have been
// read: a sync takes long, and until all rows have been read, a row must be copied out before it
// changes.
//
// Thread-safe. The tables, the executor, the file system and the kill points are not owned and must
// outlive the tasks.

#ifndef SATRAP_EMBEDDING_PS_CHECKPOINT_CUT_WRITER_H_
#define SATRAP_EMBEDDING_PS_CHECKPOINT_CUT_WRITER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "common/file/file_system.h"
#include "common/role/kill_points.h"
#include "common/thread/executor.h"
#include "common/thread/mutex.h"
#include "embedding_ps/checkpoint/row_file.h"
#include "embedding_ps/table/embedding_table.h"
#include "proto/control.pb.h"

namespace satrap {

inline constexpr int kPartitionsPerFile = 256;
inline constexpr size_t kMostFilesOfPs = 64;

class CutWriter : public std::enable_shared_from_this<CutWriter> {
 public:
  struct Options {
    std::vector<EmbeddingTable*> tables;
    std::string directory;   // exists
    int64_t copy_bytes = 0;  // memory for rows that are copied out, over all tables
    int threads = 1;         // files written at the same time
    Executor* executor = nullptr;
    FileSystem* file_system = nullptr;
    KillPoints* kill_points = nullptr;  // may be null
  };
  struct Result {
    // OK if `files` are durable. Otherwise the reason why the cut was abandoned: the status that
    // was passed to Abandon, the error of a file (with the file's name), RESOURCE_EXHAUSTED if
    // copies needed more than copy_bytes, or ABORTED if a later mark or a load has ended the cut of
    // the tables.
    absl::Status status;
    bool copy_limit = false;  // abandoned because copies needed more than copy_bytes
    // Ordered by table and partition, except that the parts of one file stay together, in the order
    // that they have in the file.
    std::vector<SavedFile> files;
    int64_t copied_rows = 0;
    int64_t copied_bytes = 0;  // of memory, in total
    int64_t bytes_written = 0;
    double seconds = 0;  // from the mark on
  };
  using Done = absl::AnyInvocable<void(const Result&)>;

  // Marks all rows. REQUIRES: no row is being changed
  static std::shared_ptr<CutWriter> Mark(const Options& options);

  // Begins to write. `done` runs once, in a task of the executor, when writing has ended and the
  // copies are freed. REQUIRES: called once
  void Start(Done done);

  // Makes writing end soon, unless it has already ended. No further file is begun or made durable.
  void Abandon(absl::Status why);

 private:
  struct Range {
    size_t table;  // in options_.tables
    int first_partition;
    int last_partition;
    uint64_t bytes;  // approximate
  };
  struct File {
    std::string name;
    std::vector<Range> ranges;
  };
  // A file that is being written, and its next block.
  struct Work;

  explicit CutWriter(const Options& options);
  std::vector<Range> RangesOf(size_t table, bool few) const;
  void PlanFiles();
  void PlanSharedFiles();
  enum class Next { kBlock, kCommit, kNone };

  void Post(std::shared_ptr<Work> work);
  void RunTask(std::shared_ptr<Work> work);
  Next TakeNext(Work* work);
  absl::Status WriteBlock(Work* work);
  absl::Status GatherBlock(Work* work);
  void EndRange(Work* work);
  void EndFile(Work* work);
  absl::Status CommitFile(Work* work);
  void EndWork();
  void EndCuts();

  const Options options_;
  const std::shared_ptr<CopyBudget> budget_;
  const int64_t begun_us_;
  std::vector<uint64_t> cuts_;      // of each table
  std::vector<size_t> block_rows_;  // the most rows of a block of each table
  std::vector<File> files_;

  Mutex mutex_;
  absl::Status status_ GUARDED_BY(mutex_);
  size_t next_file_ GUARDED_BY(mutex_) = 0;
  size_t files_read_ GUARDED_BY(mutex_) = 0;
  std::deque<std::unique_ptr<RowFileWriter>> unsynced_ GUARDED_BY(mutex_);  // complete, not durable
  int works_ GUARDED_BY(mutex_) = 0;                                // how many have not ended
  std::vector<std::vector<SavedFile>> written_ GUARDED_BY(mutex_);  // the parts of each file
  Result result_ GUARDED_BY(mutex_);
  Done done_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_CHECKPOINT_CUT_WRITER_H_
