#include "data_loader/batch/record_batch_maker.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "data_loader/batch/file_block_reader.h"
#include "data_loader/batch/synthetic_block_reader.h"

namespace satrap {
namespace {

// Reads whole blocks and queues them as ranges (`pending_`); a batch takes ranges from the front. A
// batch may therefore end in the middle of a block, and a block may feed several batches.
class RecordBatchMaker final : public BatchMaker {
 public:
  explicit RecordBatchMaker(std::shared_ptr<const StreamSpec> spec)
      : spec_(std::move(spec)),
        batch_size_(static_cast<uint64_t>(spec_->job.global_batch_size())),
        // The last batch of a lane is flagged. A full batch is emitted only when one more record
        // is known, which proves that it is not the last.
        needed_(batch_size_ + (spec_->ordered ? 1 : 0)),
        reads_first_epoch_(spec_->reports_bad) {
    if (reads_first_epoch_) spec_->progress->AddReader(spec_->stream);
    if (spec_->click_log == nullptr) parser_ = NewParser(spec_->job.data(), spec_->stream);
  }

  void BeginEpoch(uint32_t epoch) override {
    CHECK(pending_rows_ == 0 && reader_ == nullptr);
    epoch_ = epoch;
    splits_.clear();
    splits_ended_ = false;
    batches_ = 0;
  }
  void AddSplit(uint32_t split) override {
    CHECK(split < spec_->splits.size()) << "split " << split;
    splits_.push_back(split);
  }
  void EndSplits() override { splits_ended_ = true; }

  absl::StatusOr<Result> MakeBatch(std::vector<Part>* parts) override {
    while (pending_rows_ < needed_) {
      if (reader_ == nullptr && splits_.empty()) {
        if (!splits_ended_) return Result::kNeedsSplit;
        return Finish(parts);
      }
      RETURN_IF_ERROR(ReadBlock());
    }
    Emit(false, parts);
    return Result::kBatch;
  }

 private:
  // Called when all splits are read: gives the last batch if one is left. A lane has at least one
  // batch in an epoch, of zero samples if need be: the ranks wait for its last_of_lane flag.
  absl::StatusOr<Result> Finish(std::vector<Part>* parts) {
    if (pending_rows_ > 0 || (spec_->ordered && batches_ == 0)) {
      Emit(true, parts);
      return Result::kBatch;
    }
    if (std::exchange(reads_first_epoch_, false)) {
      RETURN_IF_ERROR(spec_->progress->EndReader(spec_->stream));
    }
    return Result::kEnd;
  }

  absl::Status ReadBlock() {
    if (reader_ == nullptr) {
      split_ = splits_.front();
      splits_.pop_front();
      RETURN_IF_ERROR(OpenSplit());
    }
    std::shared_ptr<Block> block = TakeSpareBlock();
    ASSIGN_OR_RETURN(const bool found, reader_->Next(block.get()));
    if (!found) {
      reader_ = nullptr;
      return absl::OkStatus();
    }
    block->split = split_;
    if (spec_->shuffled) {
      ShuffleBlock(spec_->job.seed(), epoch_, block.get());
    } else {
      KeepOrder(block.get());
    }
    const uint32_t rows = static_cast<uint32_t>(block->order.size());
    pending_.push_back({std::move(block), 0, rows});
    pending_rows_ += rows;
    return absl::OkStatus();
  }

  absl::Status OpenSplit() {
    const Split& split = spec_->splits[split_];
    if (spec_->click_log != nullptr) {
      reader_ = NewSyntheticBlockReader(split, spec_->stream, spec_->block_rows,
                                        spec_->click_log.get(), spec_->progress);
      return absl::OkStatus();
    }
    FileBlockOptions options;
    options.stream = spec_->stream;
    options.block_rows = spec_->block_rows;
    options.filter = &spec_->filter;
    options.parser = parser_.get();
    options.progress = spec_->progress;
    options.report_bad = reads_first_epoch_;
    ASSIGN_OR_RETURN(reader_, NewFileBlockReader(split, split_, options));
    return absl::OkStatus();
  }

  // A block that no pending range uses, or a new one. Parts hold copies, so a block is free again
  // as soon as its last range was encoded, and its memory is used for the next one.
  std::shared_ptr<Block> TakeSpareBlock() {
    for (std::shared_ptr<Block>& block : blocks_) {
      if (block.use_count() == 1) return block;
    }
    blocks_.push_back(std::make_shared<Block>(spec_->schema));
    return blocks_.back();
  }

  void Emit(bool last, std::vector<Part>* parts) {
    std::vector<BlockRange> batch;
    uint64_t wanted = std::min(batch_size_, pending_rows_);
    pending_rows_ -= wanted;
    while (wanted > 0) {
      BlockRange& front = pending_.front();
      const uint32_t taken = static_cast<uint32_t>(std::min<uint64_t>(wanted, front.size()));
      batch.push_back({front.block, front.from, front.from + taken});
      front.from += taken;
      wanted -= taken;
      if (front.size() == 0) pending_.pop_front();
    }
    ++batches_;
    *parts = CutBatch(*spec_, batch, epoch_, last);
  }

  const std::shared_ptr<const StreamSpec> spec_;
  const uint64_t batch_size_;
  const uint64_t needed_;
  // True until the first epoch is read, if this stream reports bad records: they are counted once,
  // not in each epoch.
  bool reads_first_epoch_;
  std::unique_ptr<Parser> parser_;
  uint32_t epoch_ = 0;
  std::deque<uint32_t> splits_;
  bool splits_ended_ = false;
  uint32_t split_ = 0;  // the one that `reader_` reads
  std::unique_ptr<BlockReader> reader_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::deque<BlockRange> pending_;
  uint64_t pending_rows_ = 0;
  uint64_t batches_ = 0;
};

}  // namespace

std::unique_ptr<BatchMaker> NewRecordBatchMaker(std::shared_ptr<const StreamSpec> spec) {
  return std::make_unique<RecordBatchMaker>(std::move(spec));
}

}  // namespace satrap
