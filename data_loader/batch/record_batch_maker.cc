#include "data_loader/batch/record_batch_maker.h"

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "data_loader/batch/batch_cutter.h"
#include "data_loader/batch/block_pool.h"
#include "data_loader/batch/file_block_reader.h"
#include "data_loader/batch/synthetic_block_reader.h"

namespace satrap {
namespace {

// Reads whole blocks and queues them in a BatchCutter, with the ends of splits between them.
//
// In an ordered stream, batches are the same wherever reading begins: the consumed records are a
// prefix of the lane, and a batch's contents depend only on its place in the lane. The end of a
// split is sent with the last record before it. That end is known by then, because a batch is made
// only when one further record is known.
class RecordBatchMaker final : public BatchMaker {
 public:
  explicit RecordBatchMaker(std::shared_ptr<const StreamSpec> spec)
      : spec_(std::move(spec)),
        batch_size_(static_cast<uint64_t>(spec_->job.global_batch_size())),
        // The last batch of a lane must be flagged. So a full batch is returned only when one
        // further record is known, which proves that the batch is not the last.
        needed_(batch_size_ + (spec_->ordered ? 1 : 0)),
        // Ends of splits are only for the ledger, and evaluation has no ledger.
        tells_ends_(spec_->stream == TRAIN_STREAM),
        reads_first_(spec_->begin.epoch == 0),
        blocks_(spec_->schema),
        cutter_(*spec_) {
    if (reads_first_) spec_->AddReader();
    // Make no parser if there are no splits: the job may read topics and have no text format.
    if (spec_->click_log == nullptr && !spec_->splits.empty()) {
      parser_ = NewParser(spec_->job.data(), spec_->stream);
    }
  }

  void BeginEpoch(uint32_t epoch) override {
    CHECK(cutter_.empty() && reader_ == nullptr);
    epoch_ = epoch;
    splits_.clear();
    splits_ended_ = false;
    batches_ = 0;
  }
  void AddSplit(uint32_t split) override {
    CHECK(split < spec_->splits.size()) << "split " << split;
    if (spec_->begin.consumed.IsSplitDone(epoch_, split)) return;
    splits_.push_back(split);
  }
  void EndSplits() override { splits_ended_ = true; }

  absl::StatusOr<Result> MakeBatch(std::vector<Part>* parts) override {
    // In an unordered stream, continue to read while exactly one batch is full and a split is open.
    // If the split has no further record, its end is sent with this batch, so an epoch rarely needs
    // a part only for ends of splits.
    while (cutter_.rows() < needed_ || (cutter_.rows() == batch_size_ && reader_ != nullptr)) {
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
  // Called when all splits are read: makes the last batch, if anything is left. A lane has at least
  // one batch in an epoch, if necessary with zero samples, because the ranks wait for its
  // last_of_lane flag. Ends of splits that no earlier batch could carry also make a batch.
  absl::StatusOr<Result> Finish(std::vector<Part>* parts) {
    if (!cutter_.empty() || (spec_->ordered && batches_ == 0)) {
      Emit(true, parts);
      return Result::kBatch;
    }
    if (std::exchange(reads_first_, false)) RETURN_IF_ERROR(spec_->EndReader());
    return Result::kEnd;
  }

  absl::Status ReadBlock() {
    if (reader_ == nullptr) {
      split_ = splits_.front();
      splits_.pop_front();
      RETURN_IF_ERROR(OpenSplit());
      skipped_rows_ = 0;
    }
    std::shared_ptr<Block> block = blocks_.Take();
    ASSIGN_OR_RETURN(const bool found, reader_->Next(block.get()));
    if (!found) {
      RETURN_IF_ERROR(CheckEnd());
      if (tells_ends_ && !spec_->begin.consumed.IsSplitEndConsumed(epoch_, split_)) {
        cutter_.QueueRider(EndOfSplit(split_, reader_->End()));
      }
      reader_ = nullptr;
      return absl::OkStatus();
    }
    block->split = split_;
    if (epoch_ == 0) spec_->watch->Add(block->records, spec_->splits[split_].path);
    if (spec_->shuffled) {
      ShuffleBlock(spec_->job.seed(), epoch_, block.get());
    } else {
      KeepOrder(block.get());
    }
    const uint64_t skipped_before = cutter_.skipped_rows();
    const absl::Status queued = cutter_.Queue(std::move(block), Consumption());
    if (!queued.ok()) return Changed(queued.message());
    skipped_rows_ += cutter_.skipped_rows() - skipped_before;
    return absl::OkStatus();
  }

  // Call at the end of a split. Checks that the split still has all of its records that were
  // consumed. If the split's end is consumed, too, checks that the split has exactly the number of
  // records that this end states. Does nothing for the synthetic log, which cannot change.
  absl::Status CheckEnd() const {
    if (spec_->click_log != nullptr) return absl::OkStatus();
    const Ledger::SplitRows known = spec_->begin.consumed.RowsOf(epoch_, split_);
    const uint64_t rows = reader_->End().rows;
    if (known.all.has_value() && *known.all != rows) {
      return Changed(absl::StrCat("split ", split_, " has ", Counted(rows, "record"), ", but had ",
                                  *known.all, " before the restart"));
    }
    if (skipped_rows_ == known.consumed) return absl::OkStatus();
    return Changed(absl::StrCat("split ", split_, " has ", Counted(rows, "record"), ", but only ",
                                skipped_rows_, " of the ", known.consumed,
                                " that were trained before the restart"));
  }

  absl::Status Changed(absl::string_view why) const {
    return absl::FailedPreconditionError(absl::StrCat(
        spec_->splits[split_].path, ", from byte ", spec_->splits[split_].from, ": ", why,
        "; the file has changed since the run began. Put it back as it was to continue, or begin "
        "a new run"));
  }

  SplitConsumption Consumption() const { return {&spec_->begin.consumed, epoch_, split_}; }

  absl::Status OpenSplit() {
    const Split& split = spec_->splits[split_];
    if (spec_->click_log != nullptr) {
      reader_ = NewSyntheticBlockReader(split, spec_->stream, spec_->block_rows,
                                        spec_->click_log.get(), spec_->progress, Consumption());
      return absl::OkStatus();
    }
    FileBlockOptions options;
    options.stream = spec_->stream;
    options.block_rows = spec_->block_rows;
    options.filter = &spec_->filter;
    options.parser = parser_.get();
    options.progress = spec_->progress;
    options.report_bad = spec_->reports_bad && epoch_ == 0;
    options.consumed = Consumption();
    options.check = &spec_->check;
    options.watch = spec_->watch.get();
    ASSIGN_OR_RETURN(reader_, NewFileBlockReader(split, split_, options));
    return absl::OkStatus();
  }

  void Emit(bool last, std::vector<Part>* parts) {
    ++batches_;
    *parts = cutter_.Cut(epoch_, last);
  }

  const std::shared_ptr<const StreamSpec> spec_;
  const uint64_t batch_size_;
  const uint64_t needed_;
  const bool tells_ends_;
  bool reads_first_;  // true until epoch 0 is read, where bad records are counted
  std::unique_ptr<Parser> parser_;
  uint32_t epoch_ = 0;
  std::deque<uint32_t> splits_;
  bool splits_ended_ = false;
  uint32_t split_ = 0;         // the split that `reader_` reads
  uint64_t skipped_rows_ = 0;  // consumed records of that split
  std::unique_ptr<BlockReader> reader_;
  BlockPool blocks_;
  BatchCutter cutter_;
  uint64_t batches_ = 0;
};

}  // namespace

std::unique_ptr<BatchMaker> NewRecordBatchMaker(std::shared_ptr<const StreamSpec> spec) {
  return std::make_unique<RecordBatchMaker>(std::move(spec));
}

}  // namespace satrap
