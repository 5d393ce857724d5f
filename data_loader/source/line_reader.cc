#include "data_loader/source/line_reader.h"

#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

constexpr size_t kChunkBytes = 256 << 10;
constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

// The length in bytes of a line or record without its line end. `size` is its length without the
// newline; a "\r" before the newline also belongs to the line end.
size_t TextBytes(const char* from, size_t size, bool newline) {
  return newline && size > 0 && from[size - 1] == '\r' ? size - 1 : size;
}

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteSource> source, bool plain, uint64_t offset,
                       uint64_t end, bool count_lines, absl::optional<QuoteRules> multiline)
    : source_(std::move(source)),
      plain_(plain),
      end_(end),
      buffer_(kChunkBytes),
      offset_(offset),
      count_lines_(count_lines),
      multiline_(std::move(multiline)) {}

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const Split& split,
                                                             absl::optional<QuoteRules> multiline) {
  CHECK(!split.path.empty());
  // A reader that starts in the middle of a file cannot know whether a line end is within quotes.
  CHECK(split.from == 0 || !multiline.has_value()) << split.path;
  const bool plain = split.compression == Compression::kNone;
  // Start one byte early and skip to the next line. If that byte is a newline, nothing of the split
  // itself is skipped.
  const uint64_t from = plain && split.from > 0 ? split.from - 1 : 0;
  const uint64_t end = plain ? split.to : std::numeric_limits<uint64_t>::max();
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source,
                   OpenByteSource(split.path, split.compression, from, split.file_bytes));
  std::unique_ptr<LineReader> reader(
      new LineReader(std::move(source), plain, from, end, split.from == 0, std::move(multiline)));
  if (split.from > 0) RETURN_IF_ERROR(reader->SkipLine());
  if (!plain) {
    // Only compressed files need this check: plain files were checked when the splits were listed.
    RETURN_IF_ERROR(reader->Fill().status());
    RETURN_IF_ERROR(CheckIsText(absl::string_view(reader->buffer_.data(), reader->limit_),
                                split.path + ", decompressed,"));
  }
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
  // This is bounded: the buffer grows only if one line fills it, and FindEnd stops at
  // kMaxLineBytes.
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

absl::StatusOr<LineReader::End> LineReader::FindEnd(size_t from, size_t* size) {
  size_t scanned = from;
  while (true) {
    const char* unread_bytes = buffer_.data() + begin_;
    const size_t unread = limit_ - begin_;
    const void* newline =
        unread > scanned ? std::memchr(unread_bytes + scanned, '\n', unread - scanned) : nullptr;
    if (newline != nullptr) {
      *size = static_cast<size_t>(static_cast<const char*>(newline) - unread_bytes);
      return End::kNewline;
    }
    *size = unread;
    if (unread > kMaxLineBytes + 1) return End::kNotFound;  // 1: "\r" is not part of the line
    scanned = unread;
    ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) return End::kEndOfFile;
  }
}

size_t LineReader::ByteOrderMarkBytes(size_t size) const {
  if (offset_ > 0) return 0;
  const bool marked =
      absl::StartsWith(absl::string_view(buffer_.data() + begin_, size), kByteOrderMark);
  return marked ? kByteOrderMark.size() : 0;
}

absl::StatusOr<uint64_t> LineReader::FindRecordEnd(size_t* size, End* end) {
  size_t scanned = ByteOrderMarkBytes(*size);
  const absl::string_view first(buffer_.data() + begin_ + scanned, *size - scanned);
  const std::string& comment = multiline_->comment_prefix;
  if (first.find('"') == absl::string_view::npos ||
      (!comment.empty() && absl::StartsWith(first, comment))) {
    return 1;
  }
  const size_t first_size = *size;
  RecordEndFinder finder(&*multiline_);
  // Compute the address of the bytes again each time, because FindEnd may move the buffer.
  for (uint64_t lines = 1;; ++lines) {
    const char* const unread = buffer_.data() + begin_;
    if (!finder.EndsWithinQuotes(absl::string_view(unread + scanned, *size - scanned))) {
      if (lines == 1 || TextBytes(unread, *size, *end == End::kNewline) <= kMaxLineBytes) {
        return lines;
      }
      break;
    }
    if (*end != End::kNewline || *size > kMaxLineBytes) break;
    scanned = *size + 1;  // a newline within quotes changes nothing
    ASSIGN_OR_RETURN(*end, FindEnd(scanned, size));
  }
  *size = first_size;
  *end = End::kNewline;
  return 1;
}

absl::StatusOr<bool> LineReader::Next(Line* line) {
  if (offset_ >= end_) return false;
  size_t size = 0;
  ASSIGN_OR_RETURN(End end, FindEnd(0, &size));
  if (end == End::kEndOfFile && size == 0) return false;
  uint64_t lines = 1;
  if (multiline_.has_value() && end == End::kNewline) {
    ASSIGN_OR_RETURN(lines, FindRecordEnd(&size, &end));
  }
  line->offset = offset_;
  line->number = count_lines_ ? number_ + 1 : 0;
  number_ += lines;
  const char* from = buffer_.data() + begin_;
  const size_t text_size = TextBytes(from, size, end == End::kNewline);
  line->too_long = text_size > kMaxLineBytes;
  if (line->too_long) {
    long_line_.assign(from, kMaxLineBytes);  // reading on overwrites the buffer
    line->text = long_line_;
    RETURN_IF_ERROR(SkipLine());
    return true;
  }
  const size_t mark = ByteOrderMarkBytes(text_size);
  line->text = absl::string_view(from + mark, text_size - mark);
  const size_t used = end == End::kNewline ? size + 1 : size;
  begin_ += used;
  offset_ += used;
  return true;
}

}  // namespace satrap
