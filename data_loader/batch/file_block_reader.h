// The BlockReader of text formats. It reads lines, parses them, drops the records of other streams
// and reports bad records.

#ifndef SATRAP_DATA_LOADER_BATCH_FILE_BLOCK_READER_H_
#define SATRAP_DATA_LOADER_BATCH_FILE_BLOCK_READER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "data_loader/batch/block_reader.h"
#include "data_loader/batch/read_progress.h"
#include "data_loader/batch/record_filter.h"
#include "data_loader/check/record_check.h"
#include "data_loader/check/value_watch.h"
#include "data_loader/parser/parser.h"
#include "data_loader/source/split_list.h"

namespace satrap {

struct FileBlockOptions {
  Stream stream = TRAIN_STREAM;
  uint64_t block_rows = kUnshuffledBlockRows;
  const RecordFilter* filter = nullptr;
  Parser* parser = nullptr;
  ReadProgress* progress = nullptr;
  // False if the file was read before: its bad records, empty lines and comments were counted then,
  // so they are now skipped without a report.
  bool report_bad = true;
  // If the first record of a block is consumed, the block's bad lines were reported before.
  SplitConsumption consumed;
  // Refuses records that can be parsed but that the job cannot use; these count as bad. If null, no
  // record is refused.
  const RecordCheck* check = nullptr;
  ValueWatch* watch = nullptr;  // is told of refused records that are reported; may be null
};

// Opens split number `split_index` of a text format. Everything that `options` points to must
// outlive the reader. Fails as LineReader::Open does, or with INVALID_ARGUMENT if the file's header
// does not match the job's columns.
absl::StatusOr<std::unique_ptr<BlockReader>> NewFileBlockReader(const Split& split,
                                                                uint32_t split_index,
                                                                const FileBlockOptions& options);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_FILE_BLOCK_READER_H_
