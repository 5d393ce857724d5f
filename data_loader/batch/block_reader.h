// A BlockReader reads the records of one split, block by block.
//
// Not thread-safe; blocks on the disk: for the loader's parsing threads only.

#ifndef SATRAP_DATA_LOADER_BATCH_BLOCK_READER_H_
#define SATRAP_DATA_LOADER_BATCH_BLOCK_READER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "data_loader/batch/block.h"
#include "data_loader/batch/read_progress.h"
#include "data_loader/batch/record_filter.h"
#include "data_loader/parser/parser.h"
#include "data_loader/source/split_list.h"
#include "data_loader/synthetic/click_log.h"

namespace satrap {

class BlockReader {
 public:
  virtual ~BlockReader() = default;

  // Fills `block->records` and `block->index` with the next block that holds a record of the
  // stream; false at the end of the split. Errors name the file.
  virtual absl::StatusOr<bool> Next(Block* block) = 0;
};

struct FileBlockOptions {
  Stream stream = TRAIN_STREAM;
  uint64_t block_rows = kUnshuffledBlockRows;
  const RecordFilter* filter = nullptr;
  Parser* parser = nullptr;
  ReadProgress* progress = nullptr;
  // Bad records are counted and kept, and empty lines and comments counted, where they are read for
  // the first time only.
  bool report_bad = true;
};

// Reads split number `split_index` of a text format. What `options` points to must outlive the
// reader. Fails as LineReader::Open, or INVALID_ARGUMENT if the file's header is not the job's.
absl::StatusOr<std::unique_ptr<BlockReader>> NewFileBlockReader(const Split& split,
                                                                uint32_t split_index,
                                                                const FileBlockOptions& options);

// Makes the rows of a synthetic split. `log` and `progress` must outlive the reader.
std::unique_ptr<BlockReader> NewSyntheticBlockReader(const Split& split, Stream stream,
                                                     uint64_t block_rows, const ClickLog* log,
                                                     ReadProgress* progress);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BLOCK_READER_H_
