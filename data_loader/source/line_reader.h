// A LineReader gives the lines of one split: those whose first byte lies in it. A line ends with
// "\n" or "\r\n" or with the file; its end is no part of it.
//
// A line of more than kMaxLineBytes is given cut off and marked; the rest of it is skipped, so
// memory is bounded whatever the file holds.
//
// A file ends where it ended when the splits were listed; one that has shrunk is an error
// (byte_source.h).
//
// Not thread-safe; blocks on the disk.

#ifndef SATRAP_DATA_LOADER_SOURCE_LINE_READER_H_
#define SATRAP_DATA_LOADER_SOURCE_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data_loader/source/byte_source.h"
#include "data_loader/source/split_list.h"

namespace satrap {

inline constexpr size_t kMaxLineBytes = size_t{1} << 20;

class LineReader {
 public:
  // Opens the split's file. Errors as OpenByteSource.
  // REQUIRES: the split has a path
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(const Split& split);

  struct Line {
    absl::string_view text;  // valid until the next call
    uint64_t offset = 0;     // of its first byte in the decompressed file
    uint64_t number = 0;     // from 1 at the beginning of the file; 0: not known
    bool too_long = false;   // `text` is its beginning
  };

  // The next line; false at the end of the split. Errors as ByteSource::Read.
  absl::StatusOr<bool> Next(Line* line);

  // Bytes on disk that the lines given so far take; of a compressed file, those that were read. The
  // splits of a file together have its size.
  uint64_t disk_bytes() const { return plain_ ? offset_ - first_offset_ : source_->disk_bytes(); }

 private:
  LineReader(std::unique_ptr<ByteSource> source, bool plain, uint64_t offset, uint64_t end,
             bool count_lines);

  enum class End { kNewline, kEndOfFile, kNotFound };
  // Bytes of the line that begins the unread bytes. Not found: it is longer than a line may be, and
  // *size counts only what has been read of it.
  absl::StatusOr<End> FindEnd(size_t* size);
  // Makes the unread bytes begin the buffer and reads more behind them; false at the file's end.
  absl::StatusOr<bool> Fill();
  // Moves past the next "\n" or to the end of the file.
  absl::Status SkipLine();

  const std::unique_ptr<ByteSource> source_;
  const bool plain_;
  const uint64_t end_;  // lines that begin here or later belong to the next split
  std::vector<char> buffer_;
  size_t begin_ = 0;  // unread bytes are buffer_[begin_, limit_)
  size_t limit_ = 0;
  uint64_t offset_;            // of buffer_[begin_] in the file
  uint64_t first_offset_ = 0;  // of the split's first line
  uint64_t number_ = 0;        // of lines given, while counted
  const bool count_lines_;
  std::string long_line_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_LINE_READER_H_
