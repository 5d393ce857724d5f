#include "data_loader/batch/file_block_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "data_loader/parser/bad_text.h"
#include "data_loader/source/line_reader.h"

namespace satrap {
namespace {

// Good records are added to the shared counts whenever this many have been read. The limit on the
// fraction of bad records is checked against these counts, so they must always be nearly up to
// date.
constexpr uint64_t kCountedRecords = 256;

class FileBlockReader final : public BlockReader {
 public:
  FileBlockReader(std::string path, uint32_t split_index, const FileBlockOptions& options,
                  std::unique_ptr<LineReader> lines)
      : path_(std::move(path)),
        split_index_(split_index),
        options_(options),
        lines_(std::move(lines)),
        multiline_(options.parser->multiline().has_value()) {}

  absl::StatusOr<bool> Next(Block* block) override {
    block->records.Clear();
    // Skip blocks of a seeded split that have no record of this stream. Their bad and empty lines
    // count as read before the next block.
    bool more = true;
    while (more && block->records.rows() == 0) {
      block->index = position_ / options_.block_rows;
      reports_ = options_.report_bad && !options_.consumed.IsBlockBegun(block->index);
      const absl::StatusOr<bool> read = ReadBlock(&block->records);
      Count();
      if (!read.ok()) return read.status();
      more = *read;
    }
    const uint64_t rows = block->records.rows();
    if (rows == 0) return false;
    end_.rows += rows;
    end_.end_block = block->index + 1;
    block->bad_records = std::exchange(end_.bad_records, 0);
    block->empty_lines = std::exchange(end_.empty_lines, 0);
    return true;
  }

  SplitEnd End() const override { return end_; }

  // Reads up to and including the header, and checks it. The header is the first line of the file
  // that is neither empty nor a comment; if there is no such line, the file has no header.
  // REQUIRES: the header is not in an earlier split; Next was not called yet
  absl::Status ReadHeader() {
    const bool reports = options_.report_bad && !options_.consumed.IsBlockBegun(0);
    LineReader::Line line;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, lines_->Next(&line));
      if (!more) return absl::OkStatus();
      const ParseResult::Kind kind = options_.parser->KindOf(line.text);
      if (kind == ParseResult::kRecord) break;
      // A header looks like a comment if its first column's name begins with the comment prefix.
      if (kind == ParseResult::kComment && options_.parser->CheckHeader(line.text).ok()) {
        return absl::OkStatus();
      }
      if (kind == ParseResult::kEmpty && options_.report_bad) ++end_.empty_lines;
      if (kind == ParseResult::kEmpty && reports) ++counts_.empty_lines;
      if (kind == ParseResult::kComment && reports) ++counts_.comments;
    }
    const absl::Status status = options_.parser->CheckHeader(line.text);
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(path_, ": ", status.message()));
  }

 private:
  ParseResult ParseLine(const LineReader::Line& line, RecordBlock* records) {
    if (!line.too_long) return options_.parser->Parse(line.text, records);
    too_long_ = LineTooLong(line.text);
    return {ParseResult::kBad, too_long_.c_str()};
  }

  // Reads to the end of the block that contains `position_`; false at the end of the split.
  absl::StatusOr<bool> ReadBlock(RecordBlock* records) {
    const uint64_t end = (position_ / options_.block_rows + 1) * options_.block_rows;
    LineReader::Line line;
    while (position_ < end) {
      ASSIGN_OR_RETURN(const bool more, lines_->Next(&line));
      if (!more) return false;
      ParseResult result = ParseLine(line, records);
      if (result.kind == ParseResult::kRecord && options_.check != nullptr) Check(records, &result);
      switch (result.kind) {
        case ParseResult::kRecord:
          ++counts_.scanned;
          if (options_.filter->Keeps(split_index_, position_)) {
            ++counts_.records;
          } else {
            records->DropLastRow();
          }
          // Count records of other streams, too, because all streams of a seeded split must number
          // the records of a file in the same way.
          ++position_;
          if (counts_.scanned == kCountedRecords) Count();
          break;
        case ParseResult::kEmpty:
          if (options_.report_bad) ++end_.empty_lines;
          if (reports_) ++counts_.empty_lines;
          break;
        case ParseResult::kComment:
          if (reports_) ++counts_.comments;
          break;
        case ParseResult::kBad:
          if (options_.report_bad) ++end_.bad_records;
          if (reports_) RETURN_IF_ERROR(ReportBad(line, result.reason, records->rows()));
          break;
      }
    }
    return true;
  }

  // If the job cannot use the last record, removes it and makes the result a bad record.
  void Check(RecordBlock* records, ParseResult* result) {
    const RecordCheck::Fault fault = options_.check->Check(*records, &refused_);
    if (fault == RecordCheck::Fault::kNone) return;
    records->DropLastRow();
    result->kind = ParseResult::kBad;
    result->reason = refused_.c_str();
    if (reports_ && options_.watch != nullptr) options_.watch->NoteRefused(fault, path_, refused_);
  }

  // Adds what was read since the last call to the loader's counts.
  void Count() {
    counts_.disk_bytes = lines_->disk_bytes() - counted_bytes_;
    counted_bytes_ += counts_.disk_bytes;
    options_.progress->Add(options_.stream, std::exchange(counts_, ReadCounts()));
  }

  // `index` is the number of the stream's records in the block so far.
  absl::Status ReportBad(const LineReader::Line& line, const char* reason, uint64_t index) {
    Count();  // good records before it count for max_bad_fraction
    return options_.progress->AddBad({path_, line.offset, line.number, options_.stream, reason,
                                      line.text, split_index_, position_ / options_.block_rows,
                                      index, multiline_});
  }

  const std::string path_;
  const uint32_t split_index_;
  const FileBlockOptions options_;
  const std::unique_ptr<LineReader> lines_;
  const bool multiline_;   // records may span lines
  uint64_t position_ = 0;  // good records of the split read so far, those of other streams included
  bool reports_ = false;   // whether lines of the block that is being read are reported
  SplitEnd end_;           // for all read so far; bad and empty lines only since the last block
  ReadCounts counts_;      // not yet added to the loader's counts
  uint64_t counted_bytes_ = 0;
  std::string too_long_;  // the reason why the last line over 1 MiB is bad
  std::string refused_;   // why the last refused record was refused
};

// Whether a file's header is in this split or a later one. (Empty lines and comments before the
// header may fill whole splits.)
absl::StatusOr<bool> ComesBeforeHeader(const Split& split, const Parser& parser) {
  if (split.from == 0) return true;
  Split before = split;
  before.from = 0;
  before.to = split.from;
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines, LineReader::Open(before));
  LineReader::Line line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines->Next(&line));
    if (!more) return true;
    const ParseResult::Kind kind = parser.KindOf(line.text);
    if (kind == ParseResult::kRecord) return false;
    if (kind == ParseResult::kComment && parser.CheckHeader(line.text).ok()) return false;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlockReader>> NewFileBlockReader(const Split& split,
                                                                uint32_t split_index,
                                                                const FileBlockOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines,
                   LineReader::Open(split, options.parser->multiline()));
  auto reader =
      std::make_unique<FileBlockReader>(split.path, split_index, options, std::move(lines));
  if (options.parser->has_header()) {
    ASSIGN_OR_RETURN(const bool may_hold_header, ComesBeforeHeader(split, *options.parser));
    if (may_hold_header) RETURN_IF_ERROR(reader->ReadHeader());
  }
  return std::unique_ptr<BlockReader>(std::move(reader));
}

}  // namespace satrap
