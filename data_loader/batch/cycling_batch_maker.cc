#include "data_loader/batch/cycling_batch_maker.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "common/base/check.h"

namespace satrap {
namespace {

// Batch n of the stream holds the records of batch n mod cycle_batches. ListSplits lets every split
// start with a new batch. The parts that are given share their payload with the batch that is kept,
// so only headers are copied.
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
    for (uint64_t row = spec_->splits[split].from; row < spec_->splits[split].to;
         row += batch_size_) {
      waiting_.push_back({split, row});
    }
  }
  void EndSplits() override { splits_ended_ = true; }

  absl::StatusOr<Result> MakeBatch(std::vector<Part>* parts) override {
    // The last batch of a lane is flagged, so one batch is kept back until the splits have ended.
    if (!splits_ended_ && waiting_.size() < 2) return Result::kNeedsSplit;
    if (waiting_.empty()) {
      if (!spec_->ordered || batches_ > 0) return Result::kEnd;
      *parts = CutBatch(*spec_, {}, epoch_, true);
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
  struct Batch {
    uint32_t split;
    uint64_t row;  // the first one, counted in the stream
  };

  std::vector<Part> Take(const Batch& batch, bool last) {
    const Split& split = spec_->splits[batch.split];
    const uint64_t size = std::min(batch_size_, split.to - batch.row);
    ReadCounts counts;
    counts.records = counts.scanned = size;
    spec_->progress->Add(spec_->stream, counts);
    const uint64_t slot = batch.row / batch_size_ % kept_.size();
    // The last batch of the stream may be smaller, and is made for this one use.
    std::vector<Part> parts = size < batch_size_ ? Make(slot, size) : Kept(slot);
    const uint32_t from = static_cast<uint32_t>(batch.row - split.from);
    for (Part& part : parts) {
      part.header.set_epoch(epoch_);
      PartDescription* description = part.header.mutable_part();
      description->mutable_id()->set_epoch(epoch_);
      if (spec_->ordered) description->set_last_of_lane(last);
      if (description->samples() == 0) continue;
      ProvenanceRange* provenance = description->mutable_provenance(0);
      provenance->set_split(batch.split);
      provenance->set_from(from + static_cast<uint32_t>(description->first_sample()));
      provenance->set_to(provenance->from() + description->samples());
    }
    return parts;
  }

  const std::vector<Part>& Kept(uint64_t slot) {
    if (kept_[slot].empty()) kept_[slot] = Make(slot, batch_size_);
    return kept_[slot];
  }

  std::vector<Part> Make(uint64_t slot, uint64_t size) const {
    auto block = std::make_shared<Block>(spec_->schema);
    for (uint64_t i = 0; i < size; ++i) {
      spec_->click_log->Append(spec_->stream, slot * batch_size_ + i, &block->records);
    }
    KeepOrder(block.get());
    const BlockRange all = {std::move(block), 0, static_cast<uint32_t>(size)};
    return CutBatch(*spec_, absl::MakeConstSpan(&all, 1), epoch_, false);
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
