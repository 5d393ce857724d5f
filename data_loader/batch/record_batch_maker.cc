#include "data_loader/batch/record_batch_maker.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "data_loader/batch/file_block_reader.h"
#include "data_loader/batch/synthetic_block_reader.h"

namespace satrap {
namespace {

// Reads whole blocks and queues what is not consumed of them as ranges (`pending_`), with the ends
// of splits between them; a batch takes from the front. A batch may therefore end in the middle of
// a block, and a block may feed several batches.
//
// In an ordered stream batches are the same wherever reading begins: what is consumed is a prefix of
// the lane, and what a batch holds depends on nothing but its place in the lane. The end of a split
// goes with the record before it. It is known in time, because a batch is made when one more record
// is known.
class RecordBatchMaker final : public BatchMaker {
 public:
  explicit RecordBatchMaker(std::shared_ptr<const StreamSpec> spec)
      : spec_(std::move(spec)),
        batch_size_(static_cast<uint64_t>(spec_->job.global_batch_size())),
        // The last batch of a lane is flagged. A full batch is emitted only when one more record
        // is known, which proves that it is not the last.
        needed_(batch_size_ + (spec_->ordered ? 1 : 0)),
        // Ends of splits are for the ledger, and evaluation has none.
        tells_ends_(spec_->stream == TRAIN_STREAM),
        counts_reader_(spec_->reports_bad && spec_->begin.epoch == 0) {
    if (counts_reader_) spec_->progress->AddReader(spec_->stream);
    if (spec_->click_log == nullptr) parser_ = NewParser(spec_->job.data(), spec_->stream);
  }

  void BeginEpoch(uint32_t epoch) override {
    CHECK(pending_.empty() && reader_ == nullptr);
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
    // With a full batch in hand an unordered stream reads on, too, while a split is open: if it is
    // at its end, that goes with this batch, and an epoch seldom needs a part for ends alone.
    while (pending_rows_ < needed_ || (pending_rows_ == batch_size_ && reader_ != nullptr)) {
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
  // Ends of splits that no record follows are a batch, too, if there is no other to carry them.
  absl::StatusOr<Result> Finish(std::vector<Part>* parts) {
    if (!pending_.empty() || (spec_->ordered && batches_ == 0)) {
      Emit(true, parts);
      return Result::kBatch;
    }
    if (std::exchange(counts_reader_, false)) {
      RETURN_IF_ERROR(spec_->progress->EndReader(spec_->stream));
    }
    return Result::kEnd;
  }

  absl::Status ReadBlock() {
    if (reader_ == nullptr) {
      split_ = splits_.front();
      splits_.pop_front();
      RETURN_IF_ERROR(OpenSplit());
      skipped_rows_ = 0;
    }
    std::shared_ptr<Block> block = TakeSpareBlock();
    ASSIGN_OR_RETURN(const bool found, reader_->Next(block.get()));
    if (!found) {
      RETURN_IF_ERROR(CheckEnd());
      if (tells_ends_ && !spec_->begin.consumed.IsSplitEndConsumed(epoch_, split_)) {
        pending_.push_back({{}, EndOfSplit(split_, reader_->End())});
      }
      reader_ = nullptr;
      return absl::OkStatus();
    }
    block->split = split_;
    if (spec_->shuffled) {
      ShuffleBlock(spec_->job.seed(), epoch_, block.get());
    } else {
      KeepOrder(block.get());
    }
    return Queue(block);
  }

  // Queues what is not consumed of the block.
  absl::Status Queue(const std::shared_ptr<Block>& block) {
    const uint32_t rows = static_cast<uint32_t>(block->order.size());
    uint32_t at = 0;
    const auto queue_up_to = [&](uint32_t to) -> absl::Status {
      if (at == to) return absl::OkStatus();
      RETURN_IF_ERROR(CheckRange(*block, at, to));
      pending_.push_back({{block, at, to}, absl::nullopt});
      pending_rows_ += to - at;
      return absl::OkStatus();
    };
    ReadCounts skipped;
    for (const Ledger::Range& consumed : Consumption().Of(block->index, rows)) {
      if (consumed.to > rows) {
        return Changed(absl::StrCat("block ", block->index, " has ", rows, " records, but ",
                                    consumed.to, " were trained before the restart"));
      }
      RETURN_IF_ERROR(queue_up_to(consumed.from));
      skipped.skipped += consumed.to - consumed.from;
      at = consumed.to;
    }
    RETURN_IF_ERROR(queue_up_to(rows));
    skipped_rows_ += skipped.skipped;
    if (skipped.skipped > 0) spec_->progress->Add(spec_->stream, skipped);
    return absl::OkStatus();
  }

  // Records of a file that has changed contradict the ledger. If they were sent, the next cut would
  // fail with an error that names no file. So they are checked here, where the file is known.
  absl::Status CheckRange(const Block& block, uint32_t from, uint32_t to) const {
    ProvenanceRange range;
    range.set_split(split_);
    range.set_block(block.index);
    range.set_from(from);
    range.set_to(to);
    range.set_block_rows(static_cast<uint32_t>(block.order.size()));
    const absl::Status status = spec_->begin.consumed.Check(epoch_, range);
    return status.ok() ? status : Changed(status.message());
  }

  // At the end of a split: whether it holds what is consumed of it, and as many records as its end,
  // if that is consumed, has named. Rows of the synthetic log cannot change.
  absl::Status CheckEnd() const {
    if (spec_->click_log != nullptr) return absl::OkStatus();
    const Ledger::SplitRows known = spec_->begin.consumed.RowsOf(epoch_, split_);
    const uint64_t rows = reader_->End().rows;
    if (known.all.has_value() && *known.all != rows) {
      return Changed(absl::StrCat("split ", split_, " has ", rows, " records, and had ", *known.all,
                                  " before the restart"));
    }
    if (skipped_rows_ == known.consumed) return absl::OkStatus();
    return Changed(absl::StrCat("split ", split_, " has ", rows, " records, and only ",
                                skipped_rows_, " of the ", known.consumed,
                                " that were trained before the restart"));
  }

  absl::Status Changed(absl::string_view why) const {
    return absl::FailedPreconditionError(absl::StrCat(
        spec_->splits[split_].path, ", from byte ", spec_->splits[split_].from, ": ", why,
        "; the file has changed since the run began. Put it back as it was to go on, or begin a ",
        "new run"));
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
    std::vector<ProvenanceRange> ends;
    uint64_t wanted = std::min(batch_size_, pending_rows_);
    pending_rows_ -= wanted;
    while (!pending_.empty() && (wanted > 0 || pending_.front().end.has_value())) {
      if (pending_.front().end.has_value()) {
        ends.push_back(*std::move(pending_.front().end));
        pending_.pop_front();
        continue;
      }
      BlockRange& front = pending_.front().records;
      const uint32_t taken = static_cast<uint32_t>(std::min<uint64_t>(wanted, front.size()));
      batch.push_back({front.block, front.from, front.from + taken});
      front.from += taken;
      wanted -= taken;
      if (front.size() == 0) pending_.pop_front();
    }
    ++batches_;
    *parts = CutBatch(*spec_, batch, ends, epoch_, last);
  }

  // Records, or the end of a split.
  struct Pending {
    BlockRange records;
    absl::optional<ProvenanceRange> end;
  };

  const std::shared_ptr<const StreamSpec> spec_;
  const uint64_t batch_size_;
  const uint64_t needed_;
  const bool tells_ends_;
  // True until epoch 0 is read, if this stream reports bad records: they are counted once, not in
  // each epoch.
  bool counts_reader_;
  std::unique_ptr<Parser> parser_;
  uint32_t epoch_ = 0;
  std::deque<uint32_t> splits_;
  bool splits_ended_ = false;
  uint32_t split_ = 0;         // the one that `reader_` reads
  uint64_t skipped_rows_ = 0;  // of it: those that the ledger holds as consumed
  std::unique_ptr<BlockReader> reader_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::deque<Pending> pending_;
  uint64_t pending_rows_ = 0;
  uint64_t batches_ = 0;
};

}  // namespace

std::unique_ptr<BatchMaker> NewRecordBatchMaker(std::shared_ptr<const StreamSpec> spec) {
  return std::make_unique<RecordBatchMaker>(std::move(spec));
}

}  // namespace satrap
