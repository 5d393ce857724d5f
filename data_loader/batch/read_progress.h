// Counts what a loader has read, and keeps bad records. One object serves all streams and threads
// of a loader.
//
// A bad record is counted, and its line is written to the quarantine files of this generation and
// loader (quarantine_files.h), which are created at the first bad record. If a line is over the
// length limit, only its beginning is kept. The first ten bad records are logged, then the 16th,
// the 32nd and so on.
//
// Thread-safe.

#ifndef SATRAP_DATA_LOADER_BATCH_READ_PROGRESS_H_
#define SATRAP_DATA_LOADER_BATCH_READ_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/thread/mutex.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"

namespace satrap {

// What a reader has read since its last report.
struct ReadCounts {
  uint64_t records = 0;  // good records of the stream
  uint64_t scanned = 0;  // good records, also of other streams of a seeded split
  uint64_t empty_lines = 0;
  uint64_t comments = 0;
  uint64_t disk_bytes = 0;
  // Records of the stream that were left out because they are consumed. If such a record was read
  // nevertheless, it also counts in `records`.
  uint64_t skipped = 0;
};

struct BadLine {
  absl::string_view path;  // or "TOPIC/PARTITION"
  uint64_t offset = 0;     // of the first byte in the decompressed file, or of the message
  uint64_t line = 0;       // from 1, in the file or the message; 0: unknown
  Stream stream = TRAIN_STREAM;
  const char* reason = "";
  absl::string_view text;
  // The bad record's place in the terms of ProvenanceRange: just before the good record at this
  // position, or after the last record if there is no such record. For a topic, `block` is the
  // message's offset and `index` is 0, because a later generation may read the message in another
  // block.
  uint32_t split = 0;
  uint64_t block = 0;
  uint64_t index = 0;
  // Whether records of the file may span lines. Then `text` is written as one line, with
  // backslashes, line feeds and carriage returns escaped.
  bool multiline = false;
  bool is_message = false;  // it is from a topic: `offset` counts messages and not bytes
  // The topic that keeps the record. If empty, the quarantine files keep it.
  absl::string_view dead_letter_topic = {};
};

class ReadProgress {
 public:
  struct Options {
    std::string quarantine_dir;  // empty: bad lines are counted and not written
    int loader_index = 0;
    uint64_t generation = 1;
    double max_bad_fraction = 1;
    // The train stream's good and bad records in earlier generations. They count towards
    // max_bad_fraction; otherwise, after a restart near the end, a few bad lines would end the run.
    uint64_t consumed_records = 0;
    uint64_t consumed_bad_records = 0;
    // Called with one line of text for each bad record that is to be logged, on the thread that
    // found the record. May be null.
    std::function<void(const std::string&)> log;
    uint64_t train_rows = 0;        // rows of an epoch, in all loaders; 0: unknown
    uint64_t train_disk_bytes = 0;  // total size of all train files
  };
  explicit ReadProgress(Options options);
  ~ReadProgress();
  ReadProgress(const ReadProgress&) = delete;
  ReadProgress& operator=(const ReadProgress&) = delete;

  void Add(Stream stream, const ReadCounts& counts);

  // Counts a bad record and writes its line, which waits for the disk and may fail. Once 10,000
  // records of the stream have been read, FAILED_PRECONDITION if more than max_bad_fraction of them
  // are bad. The message names both counts, the quarantine file or the dead-letter topic, and the
  // stream's first bad record.
  absl::Status AddBad(const BadLine& bad);

  // Call for each reader of the stream's first epoch.
  void AddReader(Stream stream);
  // Call when a reader has read its share of the first epoch. The call for the last reader checks
  // max_bad_fraction even if the stream has fewer than 10,000 records. Earlier calls do not,
  // because one reader's share says little about the stream.
  absl::Status EndReader(Stream stream);

  // The counts to report in heartbeats; never waits for the disk. The number of records of an epoch
  // is estimated from the bytes read, unless Options gives it.
  LoaderProgress Snapshot() const;
  uint64_t quarantined() const;
  // The number of records that were left out because they are consumed.
  uint64_t skipped() const;

 private:
  struct Counts {
    ReadCounts read;
    uint64_t bad = 0;
    size_t readers = 0;             // readers that have not finished the first epoch
    std::string first_bad;          // where the first bad record is and what is wrong with it
    std::string dead_letter_topic;  // keeps the bad records; empty: the quarantine files do
  };
  absl::Status Keep(const BadLine& bad) EXCLUDES(mutex_);
  // The numbers of the stream's good and bad records, including earlier generations.
  uint64_t GoodOf(Stream stream) const REQUIRES(mutex_);
  uint64_t BadOf(Stream stream) const REQUIRES(mutex_);
  absl::Status CheckFraction(Stream stream) const REQUIRES(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  Counts counts_[3] GUARDED_BY(mutex_);
  uint64_t bad_ GUARDED_BY(mutex_) = 0;
  bool keeps_lines_ GUARDED_BY(mutex_) = false;  // the quarantine files exist

  // Held while the files are written. It is separate from mutex_, so that readers and heartbeats do
  // not wait for the disk. Acquired before mutex_.
  Mutex files_mutex_;
  FILE* lines_ GUARDED_BY(files_mutex_) = nullptr;
  FILE* places_ GUARDED_BY(files_mutex_) = nullptr;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_READ_PROGRESS_H_
