// A LineReader gives the lines of one split: those whose first byte lies in it. A line ends with
// "\n" or "\r\n" or with the file; its end is not part of it. A UTF-8 byte order mark at the
// beginning of the file is not part of the first line.
//
// With QuoteRules it gives records: a line end within quotes does not end one. Quotes that are not
// closed by the end of the file, or within kMaxLineBytes of the record's first byte, would swallow
// all that follows. So in that case the record's first line is given alone, with its quotes open,
// and the next call continues after that line.
//
// If a line has more than kMaxLineBytes, its beginning is given and marked and the rest is skipped,
// so memory is bounded whatever the file holds.
//
// A file ends where it ended when the splits were listed; one that has shrunk is an error
// (byte_source.h).
//
// Not thread-safe. Calls wait for the disk.

#ifndef SATRAP_DATA_LOADER_SOURCE_LINE_READER_H_
#define SATRAP_DATA_LOADER_SOURCE_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "data_loader/source/byte_source.h"
#include "data_loader/source/quoting.h"
#include "data_loader/source/split_list.h"

namespace satrap {

inline constexpr size_t kMaxLineBytes = size_t{1} << 20;

class LineReader {
 public:
  // Opens the split's file. `multiline`: the rules by which records span lines; absent: every line
  // is a record. Errors as OpenByteSource. A compressed file is also read at its beginning: errors
  // as ByteSource::Read and CheckIsText if that fails or is not text. REQUIRES: the split has a
  // path; if there are rules, it begins where its file begins
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(
      const Split& split, absl::optional<QuoteRules> multiline = absl::nullopt);

  struct Line {
    absl::string_view text;  // valid until the next call
    uint64_t offset = 0;     // of its first byte in the decompressed file
    uint64_t number = 0;     // of its first line, from 1 at the beginning of the file; 0: not known
    bool too_long = false;   // `text` is only the beginning
  };

  // The next line; false at the end of the split. Errors as ByteSource::Read.
  absl::StatusOr<bool> Next(Line* line);

  // Bytes on disk of the lines given so far. For a compressed file, the bytes read so far. Over all
  // splits of a file they add up to its size.
  uint64_t disk_bytes() const { return plain_ ? offset_ - first_offset_ : source_->disk_bytes(); }

 private:
  LineReader(std::unique_ptr<ByteSource> source, bool plain, uint64_t offset, uint64_t end,
             bool count_lines, absl::optional<QuoteRules> multiline);

  enum class End { kNewline, kEndOfFile, kNotFound };
  // Sets *size to the number of unread bytes before the first line end that is at byte `from` of
  // them or later. kNotFound: they are more than a line may have, and *size counts only what has
  // been read.
  absl::StatusOr<End> FindEnd(size_t from, size_t* size);
  // REQUIRES: the first line of the unread bytes has *size bytes and ends with a newline. Sets
  // *size and *end to those of the record that begins with this line, and returns its number of
  // lines.
  absl::StatusOr<uint64_t> FindRecordEnd(size_t* size, End* end);
  // How many of the first `size` unread bytes are a byte order mark.
  size_t ByteOrderMarkBytes(size_t size) const;
  // Moves the unread bytes to the beginning of the buffer and reads more; false at the file's end.
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
  uint64_t number_ = 0;        // lines given, if count_lines_
  const bool count_lines_;
  const absl::optional<QuoteRules> multiline_;
  std::string long_line_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_LINE_READER_H_
