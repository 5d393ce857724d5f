#include "data_loader/batch/synthetic_block_reader.h"

#include <algorithm>

namespace satrap {
namespace {

class SyntheticBlockReader final : public BlockReader {
 public:
  SyntheticBlockReader(const Split& split, Stream stream, uint64_t block_rows, const ClickLog* log,
                       ReadProgress* progress, const SplitConsumption& consumed)
      : split_(split),
        stream_(stream),
        block_rows_(block_rows),
        log_(log),
        progress_(progress),
        consumed_(consumed),
        row_(split.from) {}

  absl::StatusOr<bool> Next(Block* block) override {
    block->records.Clear();
    while (row_ < split_.to) {
      block->index = (row_ - split_.from) / block_rows_;
      const uint64_t end = std::min(split_.to, row_ + block_rows_);
      const uint32_t rows = static_cast<uint32_t>(end - row_);
      const std::vector<Ledger::Range> consumed = consumed_.Of(block->index, rows);
      ReadCounts counts;
      if (!consumed.empty() && consumed[0] == Ledger::Range{0, rows}) {
        row_ = end;
        counts.skipped = rows;
        progress_->Add(stream_, counts);
        continue;
      }
      counts.records = counts.scanned = rows;
      for (; row_ < end; ++row_) log_->Append(stream_, row_, &block->records);
      progress_->Add(stream_, counts);
      return true;
    }
    return false;
  }

  SplitEnd End() const override {
    SplitEnd end;
    end.rows = split_.to - split_.from;
    end.end_block = (end.rows + block_rows_ - 1) / block_rows_;
    return end;
  }

 private:
  const Split split_;
  const Stream stream_;
  const uint64_t block_rows_;
  const ClickLog* const log_;
  ReadProgress* const progress_;
  const SplitConsumption consumed_;
  uint64_t row_;
};

}  // namespace

std::unique_ptr<BlockReader> NewSyntheticBlockReader(const Split& split, Stream stream,
                                                     uint64_t block_rows, const ClickLog* log,
                                                     ReadProgress* progress,
                                                     const SplitConsumption& consumed) {
  return std::make_unique<SyntheticBlockReader>(split, stream, block_rows, log, progress, consumed);
}

}  // namespace satrap
