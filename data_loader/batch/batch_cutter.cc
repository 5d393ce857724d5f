#include "data_loader/batch/batch_cutter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

// The number of records that come before `place` in the block's order. (`place` is in the permuted
// order.)
uint32_t RecordAt(const Block& block, Position place) {
  if (!block.is_of_topic()) return place.slot;
  const auto at = std::lower_bound(block.positions.begin(), block.positions.end(), place);
  return static_cast<uint32_t>(at - block.positions.begin());
}

}  // namespace

BatchCutter::BatchCutter(const StreamSpec& spec)
    : spec_(spec), batch_size_(static_cast<uint64_t>(spec.job.global_batch_size())) {}

absl::Status BatchCutter::Queue(std::shared_ptr<const Block> block,
                                const SplitConsumption& consumed) {
  const uint32_t size = block->size();
  BlockRange left = {block, 0, 0, {}, {}};  // what remains between consumed ranges
  const auto queue_up_to = [&](Position end) {
    left.end = end;
    left.to = RecordAt(*block, end);
    return left.begin == left.end ? absl::OkStatus() : QueueRange(left, consumed);
  };
  uint64_t skipped = 0;
  for (const Ledger::Range& range : consumed.Of(block->index, size)) {
    if (range.to > size) {
      return absl::FailedPreconditionError(absl::StrCat(
          "block ", block->index, " has ", Counted(size, block->is_of_topic() ? "slot" : "record"),
          ", but ", range.to, " were trained before the restart"));
    }
    RETURN_IF_ERROR(queue_up_to({range.from, range.from_line}));
    left.begin = {range.to, range.to_line};
    left.from = RecordAt(*block, left.begin);
    skipped += left.from - left.to;
  }
  RETURN_IF_ERROR(queue_up_to({size, 0}));
  skipped_rows_ += skipped;
  if (skipped > 0) {
    ReadCounts counts;
    counts.skipped = skipped;
    spec_.progress->Add(spec_.stream, counts);
  }
  return absl::OkStatus();
}

// Fails if the records contradict the ledger. This is checked here because the caller knows the
// file; if the records were sent, the next cut would fail with an error that names no file.
absl::Status BatchCutter::QueueRange(BlockRange range, const SplitConsumption& consumed) {
  ProvenanceRange provenance = ProvenanceOf(range);
  if (consumed.ledger != nullptr) {
    const absl::Status checked = consumed.ledger->Check(consumed.epoch, provenance);
    if (!checked.ok()) return absl::FailedPreconditionError(checked.message());
  }
  rows_ += range.size();
  if (range.size() == 0) {
    QueueRider(std::move(provenance));
  } else {
    pending_.push_back({std::move(range), {}});
  }
  return absl::OkStatus();
}

void BatchCutter::QueueRider(ProvenanceRange range) { pending_.push_back({{}, std::move(range)}); }

std::vector<Part> BatchCutter::Cut(uint32_t epoch, bool last) {
  std::vector<BlockRange> batch;
  std::vector<ProvenanceRange> riders;
  uint64_t wanted = std::min(batch_size_, rows_);
  rows_ -= wanted;
  while (!pending_.empty()) {
    BlockRange& front = pending_.front().records;
    if (front.block == nullptr) {
      riders.push_back(std::move(pending_.front().rider));
      pending_.pop_front();
      continue;
    }
    if (wanted == 0) break;
    const uint32_t cut =
        front.from + static_cast<uint32_t>(std::min<uint64_t>(wanted, front.size()));
    wanted -= cut - front.from;
    batch.push_back(PieceOf(front, front.from, cut));
    if (cut == front.to) {
      pending_.pop_front();
    } else {
      front = PieceOf(front, cut, front.to);
    }
  }
  return CutBatch(spec_, batch, riders, epoch, last);
}

}  // namespace satrap
