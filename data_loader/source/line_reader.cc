#include "data_loader/source/line_reader.h"

#include <cstring>
#include <limits>
#include <utility>

#include "common/check.h"
#include "common/status_macros.h"

namespace satrap {
namespace {

constexpr size_t kChunkBytes = 256 << 10;

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteSource> source, bool plain, uint64_t offset,
                       uint64_t end, bool count_lines)
    : source_(std::move(source)),
      plain_(plain),
      end_(end),
      buffer_(kChunkBytes),
      offset_(offset),
      count_lines_(count_lines) {}

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const Split& split) {
  CHECK(!split.path.empty());
  const bool plain = split.compression == Compression::kNone;
  // The byte before the split tells whether a line begins at its first one.
  const uint64_t from = plain && split.from > 0 ? split.from - 1 : 0;
  const uint64_t end = plain ? split.to : std::numeric_limits<uint64_t>::max();
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source,
                   OpenByteSource(split.path, split.compression, from, split.file_bytes));
  std::unique_ptr<LineReader> reader(
      new LineReader(std::move(source), plain, from, end, split.from == 0));
  if (split.from > 0) RETURN_IF_ERROR(reader->SkipLine());
  reader->first_offset_ = reader->offset_;
  return reader;
}

absl::StatusOr<bool> LineReader::Fill() {
  const size_t unread = limit_ - begin_;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, unread);
    begin_ = 0;
    limit_ = unread;
  }
  if (buffer_.size() - limit_ < kChunkBytes / 2) buffer_.resize(buffer_.size() * 2);
  ASSIGN_OR_RETURN(const size_t got,
                   source_->Read(buffer_.data() + limit_, buffer_.size() - limit_));
  limit_ += got;
  return got > 0;
}

absl::Status LineReader::SkipLine() {
  while (true) {
    const char* from = buffer_.data() + begin_;
    const void* newline = limit_ > begin_ ? std::memchr(from, '\n', limit_ - begin_) : nullptr;
    const size_t skipped =
        newline == nullptr ? limit_ - begin_ : static_cast<const char*>(newline) + 1 - from;
    begin_ += skipped;
    offset_ += skipped;
    if (newline != nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) return absl::OkStatus();
  }
}

absl::StatusOr<LineReader::End> LineReader::FindEnd(size_t* size) {
  size_t scanned = 0;
  while (true) {
    const char* from = buffer_.data() + begin_;
    const size_t unread = limit_ - begin_;
    const void* newline =
        unread > scanned ? std::memchr(from + scanned, '\n', unread - scanned) : nullptr;
    if (newline != nullptr) {
      *size = static_cast<const char*>(newline) - from;
      return End::kNewline;
    }
    *size = unread;
    if (unread > kMaxLineBytes + 1) return End::kNotFound;  // 1: "\r" is no part of the line
    scanned = unread;
    ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) return End::kEndOfFile;
  }
}

absl::StatusOr<bool> LineReader::Next(Line* line) {
  if (offset_ >= end_) return false;
  size_t size = 0;
  ASSIGN_OR_RETURN(const End end, FindEnd(&size));
  if (end == End::kEndOfFile && size == 0) return false;
  if (count_lines_) ++number_;
  line->offset = offset_;
  line->number = number_;
  const char* from = buffer_.data() + begin_;
  size_t text_size = size;
  if (end == End::kNewline && size > 0 && from[size - 1] == '\r') --text_size;
  line->too_long = text_size > kMaxLineBytes;
  if (line->too_long) {
    long_line_.assign(from, kMaxLineBytes);  // reading on overwrites the buffer
    line->text = long_line_;
    RETURN_IF_ERROR(SkipLine());
    return true;
  }
  line->text = absl::string_view(from, text_size);
  const size_t used = end == End::kNewline ? size + 1 : size;
  begin_ += used;
  offset_ += used;
  return true;
}

}  // namespace satrap
