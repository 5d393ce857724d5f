#include "data_loader/kafka/partition_blocks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/kafka/partition.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

// The number of slots in a block is a 32-bit number.
constexpr uint64_t kMaxSlots = std::numeric_limits<uint32_t>::max();

}  // namespace

PartitionBlocks::PartitionBlocks(Options options)
    : options_(std::move(options)),
      name_(KafkaPartition{options_.split.partition.topic(), options_.split.partition.partition()}
                .ToString()) {
  CHECK(options_.block_rows > 0 && options_.block_rows <= kMaxSlots);
  const TopicPartition& partition = options_.split.partition;
  partition_end_ = partition.has_end() ? partition.end() : no_end_;
  uint64_t first = partition.start();
  const SplitConsumption& consumed = options_.consumed;
  if (consumed.ledger != nullptr) {
    const Ledger& ledger = *consumed.ledger;
    if (ledger.IsSplitDone(consumed.epoch, consumed.split)) {
      finished_ = true;
      return;
    }
    first = ledger.ContiguousEnd(consumed.epoch, consumed.split, first);
    for (const Ledger::OpenBlock& open : ledger.OpenBlocks(consumed.epoch, consumed.split)) {
      known_offsets_.push_back({open.first, open.end, false});
    }
    for (const Ledger::OpenBlock& done : ledger.DoneBlocks(consumed.epoch, consumed.split, first)) {
      known_offsets_.push_back({done.first, done.end, true});
    }
    std::sort(known_offsets_.begin(), known_offsets_.end(),
              [](const Known& a, const Known& b) { return a.first < b.first; });
    last_consumed_ = ledger.LastMessageOf(consumed.epoch, consumed.split);
  }
  BeginBlock(first);
}

uint64_t PartitionBlocks::read_from() const {
  return last_consumed_.has_value() ? std::min(first_, last_consumed_->offset) : first_;
}

uint64_t PartitionBlocks::Limit() const {
  for (const Known& known : known_offsets_) {
    if (known.first > first_) return std::min(known.first, partition_end_);
  }
  return partition_end_;
}

void PartitionBlocks::BeginBlock(uint64_t first) {
  first_ = first;
  known_ = false;
  absl::optional<uint64_t> known_end;
  for (const Known& known : known_offsets_) {
    if (known.first > first_) break;
    if (known.end <= first_) continue;
    if (known.done) {
      first_ = known.end;
    } else {
      known_end = known.end;
    }
  }
  reached_ = std::max(reached_, first_);
  finished_ = first_ >= partition_end_;
  if (finished_) return;
  known_ = known_end.has_value();
  const uint64_t limit = Limit();
  end_ = known_ ? *known_end
                : (limit - first_ > options_.block_rows ? first_ + options_.block_rows : limit);
  // If some of the block is consumed, its bad records were reported before the restart.
  reports_ = options_.counts_bad && !options_.consumed.IsBlockBegun(first_);
}

absl::Status PartitionBlocks::CheckLast(const MessageBatch& batch, size_t i) {
  const uint64_t offset = static_cast<uint64_t>(batch.offset(i));
  if (offset < last_consumed_->offset) return absl::OkStatus();
  const Ledger::LastMessage last = *std::exchange(last_consumed_, absl::nullopt);
  // If the offset is larger, the last consumed message is gone. Perhaps compaction has removed it.
  if (offset > last.offset || Xxh64(batch.value(i)) == last.hash) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(name_, ", offset ", offset,
                   ": the message is not the one that was trained before the restart; ",
                   "the topic was made anew, or its log was lost. This run cannot continue with "
                   "the topic: begin a new run"));
}

absl::StatusOr<size_t> PartitionBlocks::Take(const MessageBatch& batch, size_t i) {
  // After a long gap, blocks must be closed one by one before further messages are read.
  if (complete()) return i;
  size_t last = batch.size();  // the last message of the current block
  for (; i < batch.size(); ++i) {
    if (last_consumed_.has_value()) RETURN_IF_ERROR(CheckLast(batch, i));
    const uint64_t offset = static_cast<uint64_t>(batch.offset(i));
    if (finished_) continue;
    if (offset >= end_) {
      reached_ = std::max(reached_, offset);
      break;
    }
    if (offset < first_) continue;  // completely consumed
    RETURN_IF_ERROR(TakeMessage(batch, i));
    reached_ = offset + 1;
    last = i;
    // Also limit the block's number of records, because a message may have many lines.
    if (!known_ && block_->records.rows() >= options_.block_rows) end_ = reached_;
    if (reached_ == end_) {
      ++i;
      break;
    }
  }
  if (last < batch.size()) {
    block_->last_offset = static_cast<uint64_t>(batch.offset(last));
    block_->last_hash = Xxh64(batch.value(last));
    news_.newest_ms = std::max(news_.newest_ms, batch.time_ms(last));
  }
  return i;
}

absl::Status PartitionBlocks::TakeMessage(const MessageBatch& batch, size_t i) {
  if (block_ == nullptr) {
    block_ = options_.new_block();
    block_->records.Clear();
    block_->bad_records = 0;
    block_->empty_lines = 0;
    places_.clear();
  }
  const uint64_t offset = static_cast<uint64_t>(batch.offset(i));
  const uint32_t slot = static_cast<uint32_t>(offset - first_);
  const size_t rows = block_->records.rows();
  options_.parser->Parse(batch, i, &block_->records, &found_);
  for (const uint32_t line : found_.lines) places_.push_back({slot, line});
  news_.counts.records += found_.lines.size();
  news_.counts.scanned += found_.lines.size();
  news_.counts.disk_bytes += batch.value(i).size();
  NoteTimes(rows);
  if (options_.counts_bad) {
    block_->empty_lines += found_.empty_lines;
    block_->bad_records += found_.bad.size();
  }
  if (!reports_) return absl::OkStatus();
  news_.counts.empty_lines += found_.empty_lines;
  news_.counts.comments += found_.comments;
  for (const MessageParser::BadRecord& bad : found_.bad) {
    BadLine line;
    line.path = name_;
    line.offset = offset;
    line.is_message = true;
    line.line = bad.line + 1;
    line.stream = options_.stream;
    line.reason = bad.reason.c_str();
    line.text = bad.text;
    line.split = options_.split.split;
    line.block = offset;
    line.multiline = options_.parser->keeps_line_ends();
    if (options_.watch != nullptr && bad.fault != RecordCheck::Fault::kNone) {
      options_.watch->NoteRefused(bad.fault, name_, bad.reason);
    }
    RETURN_IF_ERROR(options_.report(line));
  }
  return absl::OkStatus();
}

// Records the times of the rows from `from` on. A time of 0 means that neither the record nor the
// broker has one.
void PartitionBlocks::NoteTimes(size_t from) {
  for (size_t row = from; row < block_->records.rows(); ++row) {
    const int64_t time = block_->records.time(row);
    if (time == 0) continue;
    ++news_.records;
    news_.latest_ms = std::max(news_.latest_ms, time);
    if (time < late_below_) ++news_.late;
  }
}

void PartitionBlocks::Reach(uint64_t next) { reached_ = std::max(reached_, next); }

PartitionBlocks::Closed PartitionBlocks::Close() {
  CHECK(complete() || may_close_early());
  end_ = std::min(end_, reached_);
  Closed closed{std::exchange(block_, nullptr), first_, end_};
  if (closed.block == nullptr && known_) {
    // The block has no messages any more, but its remaining slots must still be consumed. They
    // become a rider, which is made from a block and sent with the next part.
    closed.block = options_.new_block();
    closed.block->records.Clear();
    closed.block->bad_records = 0;
    closed.block->empty_lines = 0;
    places_.clear();
    closed.block->last_offset = absl::nullopt;
  }
  if (closed.block != nullptr) {
    Block& block = *closed.block;
    block.split = options_.split.split;
    block.index = first_;
    block.end_offset = end_;
    if (options_.watch != nullptr && options_.consumed.epoch == 0) {
      options_.watch->Add(block.records, name_);
    }
    const uint32_t slots = static_cast<uint32_t>(end_ - first_);
    // The seed depends on the number of the block, counted from offset 0 in whole blocks, so a
    // topic without gaps is read in the same order as a file.
    OrderBySlots(SlotOrder(options_.seed, options_.consumed.epoch, options_.split.split, first_,
                           options_.shuffled ? options_.block_rows : 0, slots),
                 places_, &block);
  } else if (end_ - first_ == options_.block_rows) {
    // A gap may be far longer than a block. So close all whole blocks in the gap at once; the
    // blocks after them have the same bounds as if these were closed one by one.
    const uint64_t known = std::min({reached_, Limit(), first_ + kMaxSlots});
    closed.end = first_ + (known - first_) / options_.block_rows * options_.block_rows;
  }
  BeginBlock(closed.end);
  return closed;
}

uint64_t PartitionBlocks::CountUnconsumed(uint64_t from, uint64_t to) const {
  to = std::min(to, partition_end_);
  from = std::max(from, first_);
  uint64_t count = to > from ? to - from : 0;
  for (const Known& known : known_offsets_) {
    const uint64_t begin = std::max(known.first, from);
    const uint64_t end = std::min(known.end, to);
    if (known.done && begin < end) count -= end - begin;
  }
  return count;
}

PartitionBlocks::News PartitionBlocks::TakeNews() { return std::exchange(news_, News()); }

}  // namespace satrap
