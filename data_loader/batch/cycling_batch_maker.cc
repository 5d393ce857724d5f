#include "data_loader/batch/cycling_batch_maker.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "common/base/check.h"

namespace satrap {
namespace {

// Batch n of the stream has the records of batch n mod cycle_batches. ListSplits makes every split
// begin with a new batch. Each split is one block. Parts share their payload with the batch that is
// kept in memory, so only headers are copied. If a batch is partly consumed, each remaining run of
// records becomes a batch of its own.
class CyclingBatchMaker final : public BatchMaker {
 public:
  explicit CyclingBatchMaker(std::shared_ptr<const StreamSpec> spec)
      : spec_(std::move(spec)),
        batch_size_(static_cast<uint64_t>(spec_->job.global_batch_size())),
        kept_(static_cast<size_t>(spec_->job.data().synthetic().cycle_batches())) {}

  void BeginEpoch(uint32_t epoch) override {
    epoch_ = epoch;
    splits_ended_ = false;
    batches_ = 0;
  }
  void AddSplit(uint32_t split) override {
    CHECK(split < spec_->splits.size()) << "split " << split;
    const Ledger& ledger = spec_->begin.consumed;
    if (ledger.IsSplitDone(epoch_, split)) return;
    const uint32_t rows = static_cast<uint32_t>(RowsOf(split));
    ReadCounts skipped;
    uint32_t at = 0;
    const auto queue_up_to = [&](uint32_t to) {
      while (at < to) {
        const uint64_t end_of_batch = (at / batch_size_ + 1) * batch_size_;
        const uint32_t next = static_cast<uint32_t>(std::min<uint64_t>(to, end_of_batch));
        waiting_.push_back({split, at, next, false});
        at = next;
      }
    };
    for (const Ledger::Range& consumed : ledger.Consumed(epoch_, split, 0, rows)) {
      queue_up_to(consumed.from);
      skipped.skipped += consumed.to - consumed.from;
      at = consumed.to;
    }
    queue_up_to(rows);
    if (skipped.skipped > 0) spec_->progress->Add(spec_->stream, skipped);
    if (ledger.IsSplitEndConsumed(epoch_, split)) return;
    // The end of the split is sent with its last batch, or alone if all its records are consumed.
    if (waiting_.empty() || waiting_.back().split != split)
      waiting_.push_back({split, 0, 0, false});
    waiting_.back().ends_split = true;
  }
  void EndSplits() override { splits_ended_ = true; }

  absl::StatusOr<Result> MakeBatch(std::vector<Part>* parts) override {
    // Hold one batch back until the splits have ended, because a lane's last batch must be flagged.
    if (!splits_ended_ && waiting_.size() < 2) return Result::kNeedsSplit;
    if (waiting_.empty()) {
      if (!spec_->ordered || batches_ > 0) return Result::kEnd;
      *parts = CutBatch(*spec_, {}, {}, epoch_, true);
      ++batches_;
      return Result::kBatch;
    }
    const Batch batch = waiting_.front();
    waiting_.pop_front();
    ++batches_;
    *parts = Take(batch, splits_ended_ && waiting_.empty());
    return Result::kBatch;
  }

 private:
  // Records [from, to) of the split, all from the same batch of the stream.
  struct Batch {
    uint32_t split;
    uint32_t from;
    uint32_t to;
    bool ends_split;
  };

  uint64_t RowsOf(uint32_t split) const {
    return spec_->splits[split].to - spec_->splits[split].from;
  }

  std::vector<Part> Take(const Batch& batch, bool last) {
    const uint64_t size = batch.to - batch.from;
    ReadCounts counts;
    counts.records = counts.scanned = size;
    spec_->progress->Add(spec_->stream, counts);
    const uint64_t row = spec_->splits[batch.split].from + batch.from;
    const uint64_t slot = row / batch_size_ % kept_.size();
    // A smaller batch, such as the stream's last one, is made for one use and not kept.
    std::vector<Part> parts = size < batch_size_ ? Make(slot, row % batch_size_, size) : Kept(slot);
    if (parts.empty()) parts.push_back(EmptyPart(*spec_, epoch_));
    const uint32_t rows = static_cast<uint32_t>(RowsOf(batch.split));
    for (Part& part : parts) {
      part.header.set_epoch(epoch_);
      PartDescription* description = part.header.mutable_part();
      description->mutable_id()->set_epoch(epoch_);
      if (spec_->ordered) description->set_last_of_lane(last);
      if (description->samples() == 0) continue;
      ProvenanceRange* provenance = description->mutable_provenance(0);
      provenance->set_split(batch.split);
      provenance->set_from(batch.from + static_cast<uint32_t>(description->first_sample()));
      provenance->set_to(provenance->from() + description->samples());
      provenance->set_block_rows(rows);
    }
    if (batch.ends_split) {
      SplitEnd end;
      end.rows = rows;
      end.end_block = 1;
      *parts.back().header.mutable_part()->add_provenance() = EndOfSplit(batch.split, end);
    }
    return parts;
  }

  const std::vector<Part>& Kept(uint64_t slot) {
    if (kept_[slot].empty()) kept_[slot] = Make(slot, 0, batch_size_);
    return kept_[slot];
  }

  // Makes parts of `size` records of the kept batch `slot`, from its record number `first` on.
  std::vector<Part> Make(uint64_t slot, uint64_t first, uint64_t size) const {
    auto block = std::make_shared<Block>(spec_->schema);
    for (uint64_t i = first; i < first + size; ++i) {
      spec_->click_log->Append(spec_->stream, slot * batch_size_ + i, &block->records);
    }
    KeepOrder(block.get());
    const BlockRange all = {std::move(block), 0, static_cast<uint32_t>(size)};
    return CutBatch(*spec_, absl::MakeConstSpan(&all, 1), {}, epoch_, false);
  }

  const std::shared_ptr<const StreamSpec> spec_;
  const uint64_t batch_size_;
  std::vector<std::vector<Part>> kept_;
  uint32_t epoch_ = 0;
  bool splits_ended_ = false;
  std::deque<Batch> waiting_;
  uint64_t batches_ = 0;
};

}  // namespace

std::unique_ptr<BatchMaker> NewCyclingBatchMaker(std::shared_ptr<const StreamSpec> spec) {
  return std::make_unique<CyclingBatchMaker>(std::move(spec));
}

}  // namespace satrap
