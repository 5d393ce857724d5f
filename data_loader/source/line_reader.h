// A LineReader reads the lines of one split: those whose first byte is in it. A line ends with "\n"
// or "\r\n" or with the file; the line end is not part of the line. A UTF-8 byte order mark at the
// beginning of the file is not part of the first line.
//
// With QuoteRules it reads records: a line end within quotes does not end a record. If quotes are
// still open at the end of the file, or kMaxLineBytes after the record's first byte, they would
// swallow everything that follows. So in that case the record consists only of its first line, with
// its quotes open, and the next call continues after that line.
//
// If a line has more than kMaxLineBytes, only its beginning is returned, marked as such, and the
// rest is skipped. So memory is bounded whatever the file contains.
//
// A file ends where it ended when the splits were listed. A file that has shrunk is an error
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
  // Opens the split's file. `multiline` has the rules by which records span lines; if absent, every
  // line is a record. Errors are those of OpenByteSource. Of a compressed file, also reads the
  // beginning, with the errors of ByteSource::Read, and those of CheckIsText if the content is not
  // text. REQUIRES: the split has a path; if there are rules, the split begins at the beginning of
  // its file
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(
      const Split& split, absl::optional<QuoteRules> multiline = absl::nullopt);

  struct Line {
    absl::string_view text;  // valid until the next call
    uint64_t offset = 0;     // the offset of its first byte in the decompressed file
    uint64_t number = 0;     // number of its first line in the file, from 1; 0: not known
    bool too_long = false;   // `text` is only the beginning
  };

  // Reads the next line. False at the end of the split. Errors are those of ByteSource::Read.
  absl::StatusOr<bool> Next(Line* line);

  // The number of bytes on disk of the lines returned so far; for a compressed file, of all bytes
  // read so far. The sum over all splits of a file is its size.
  uint64_t disk_bytes() const { return plain_ ? offset_ - first_offset_ : source_->disk_bytes(); }

 private:
  LineReader(std::unique_ptr<ByteSource> source, bool plain, uint64_t offset, uint64_t end,
             bool count_lines, absl::optional<QuoteRules> multiline);

  enum class End { kNewline, kEndOfFile, kNotFound };
  // Searches the unread bytes, from byte `from` on, for a line end, and sets *size to the number of
  // unread bytes before it. kNotFound: there are more bytes than a line may have, and *size counts
  // only those that have been read.
  absl::StatusOr<End> FindEnd(size_t from, size_t* size);
  // Sets *size and *end to those of the record that begins with the first unread line, and returns
  // the record's number of lines. REQUIRES: that line has *size bytes and ends with a newline
  absl::StatusOr<uint64_t> FindRecordEnd(size_t* size, End* end);
  // The number of bytes, among the first `size` unread bytes, that are a byte order mark.
  size_t ByteOrderMarkBytes(size_t size) const;
  // Moves the unread bytes to the beginning of the buffer and reads more. False at the file's end.
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
  uint64_t number_ = 0;        // number of lines returned, if count_lines_
  const bool count_lines_;
  const absl::optional<QuoteRules> multiline_;
  std::string long_line_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_LINE_READER_H_
