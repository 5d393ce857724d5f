#include "data_loader/batch/synthetic_block_reader.h"

#include <algorithm>

namespace satrap {
namespace {

class SyntheticBlockReader final : public BlockReader {
 public:
  SyntheticBlockReader(const Split& split, Stream stream, uint64_t block_rows, const ClickLog* log,
                       ReadProgress* progress)
      : split_(split),
        stream_(stream),
        block_rows_(block_rows),
        log_(log),
        progress_(progress),
        row_(split.from) {}

  absl::StatusOr<bool> Next(Block* block) override {
    block->records.Clear();
    block->index = (row_ - split_.from) / block_rows_;
    const uint64_t end = std::min(split_.to, row_ + block_rows_);
    ReadCounts counts;
    counts.records = counts.scanned = end - row_;
    for (; row_ < end; ++row_) log_->Append(stream_, row_, &block->records);
    progress_->Add(stream_, counts);
    return counts.records > 0;
  }

 private:
  const Split split_;
  const Stream stream_;
  const uint64_t block_rows_;
  const ClickLog* const log_;
  ReadProgress* const progress_;
  uint64_t row_;
};

}  // namespace

std::unique_ptr<BlockReader> NewSyntheticBlockReader(const Split& split, Stream stream,
                                                     uint64_t block_rows, const ClickLog* log,
                                                     ReadProgress* progress) {
  return std::make_unique<SyntheticBlockReader>(split, stream, block_rows, log, progress);
}

}  // namespace satrap
