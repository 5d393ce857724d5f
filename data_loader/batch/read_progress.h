// What a loader has read, and what it found to be bad. One object serves all streams and threads of
// a loader.
//
// A bad record is counted, its place is logged (the first ten, then ever fewer), and its line is
// kept: DIR/loader-I.txt holds the lines as they were, DIR/loader-I.tsv, line by line for the same
// records, the fields of BadLine but its text. Both are made when the first bad record comes, and
// an earlier run's are replaced. Of a line that is over the limit the beginning is kept.
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
#include "common/mutex.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"

namespace satrap {

// Counts of one stretch of reading, added to the loader's all at once.
struct ReadCounts {
  uint64_t records = 0;  // good ones that belong to the stream
  uint64_t scanned = 0;  // good ones, those of other streams of a seeded split included
  uint64_t empty_lines = 0;
  uint64_t comments = 0;
  uint64_t disk_bytes = 0;
};

struct BadLine {
  absl::string_view path;
  uint64_t offset = 0;  // of its first byte in the decompressed file
  uint64_t line = 0;    // from 1; 0: not known
  Stream stream = TRAIN_STREAM;
  const char* reason = "";
  absl::string_view text;
  // Where the record would stand if it were good, in the terms of ProvenanceRange: before the good
  // record of this position, or where there is none, behind all that come before it.
  uint32_t split = 0;
  uint64_t block = 0;
  uint64_t index = 0;
  // Records of the file may span lines: `text` is kept on one line, with backslashes, line feeds
  // and carriage returns escaped.
  bool multiline = false;
};

class ReadProgress {
 public:
  struct Options {
    std::string quarantine_dir;  // empty: lines are not kept
    int loader_index = 0;
    double max_bad_fraction = 1;
    // Gets one line of text for each bad record that is logged, on the thread that found it. May
    // be null.
    std::function<void(const std::string&)> log;
    uint64_t train_rows = 0;        // of an epoch, all loaders together; 0: not known
    uint64_t train_disk_bytes = 0;  // of all train files
  };
  explicit ReadProgress(Options options);
  ~ReadProgress();
  ReadProgress(const ReadProgress&) = delete;
  ReadProgress& operator=(const ReadProgress&) = delete;

  void Add(Stream stream, const ReadCounts& counts);

  // Keeps the line, which blocks on the disk. An error if it cannot be kept. FAILED_PRECONDITION if
  // more than max_bad_fraction of the first 10,000 or more records of the stream are bad; it names
  // the numbers, the quarantine file and the stream's first bad record.
  absl::Status AddBad(const BadLine& bad);

  // There is one more reader of the stream's first epoch.
  void AddReader(Stream stream);
  // One of them has read its share. After the last one, the rule of AddBad for streams of fewer
  // records: not before, for one reader's share says nothing about the stream.
  absl::Status EndReader(Stream stream);

  // For heartbeats; never waits for the disk. The records of an epoch are estimated from bytes
  // until they are known.
  LoaderProgress Snapshot() const;
  uint64_t quarantined() const;

 private:
  struct Counts {
    ReadCounts read;
    uint64_t bad = 0;
    size_t readers = 0;     // of the first epoch, which have not ended
    std::string first_bad;  // its place and what is wrong with it
  };
  absl::Status Keep(const BadLine& bad) EXCLUDES(mutex_);
  absl::Status CheckFraction(Stream stream) const REQUIRES(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  Counts counts_[3] GUARDED_BY(mutex_);
  uint64_t bad_ GUARDED_BY(mutex_) = 0;
  bool keeps_lines_ GUARDED_BY(mutex_) = false;  // the files are there

  // Held while the disk works. Taken before mutex_.
  Mutex files_mutex_;
  FILE* lines_ GUARDED_BY(files_mutex_) = nullptr;
  FILE* places_ GUARDED_BY(files_mutex_) = nullptr;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_READ_PROGRESS_H_
