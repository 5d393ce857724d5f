#include "common/checkpoint/ledger/consumed_split.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

using Range = ConsumedSplit::Range;
using LastMessage = ConsumedSplit::LastMessage;

// A place in a block as one number; numbers are ordered as places are.
uint64_t PlaceOf(uint32_t slot, uint32_t line) { return uint64_t{slot} << 32 | line; }
uint64_t FromOf(const Range& range) { return PlaceOf(range.from, range.from_line); }
uint64_t ToOf(const Range& range) { return PlaceOf(range.to, range.to_line); }

Range RangeOf(const ProvenanceRange& range) {
  if (!range.has_block_end()) return {range.from(), range.to()};
  return {range.from(), range.to(), range.from_line(), range.to_line()};
}

// The end of the block: one more than the last number (offset, or block of a file) that it covers.
uint64_t EndOf(const ProvenanceRange& range) {
  return range.has_block_end() ? range.block_end() : range.block() + 1;
}

uint32_t SizeOf(const ProvenanceRange& range) {
  return range.has_block_end() ? static_cast<uint32_t>(range.block_end() - range.block())
                               : range.block_rows();
}

uint64_t RowsOf(const ProvenanceRange& range) {
  return range.has_block_end() ? range.records() : range.to() - range.from();
}

absl::optional<LastMessage> LastMessageOf(const ProvenanceRange& range) {
  if (!range.has_last_offset()) return absl::nullopt;
  return LastMessage{range.last_offset(), range.last_hash()};
}

// Keeps the message with the higher offset. The two may differ, because compaction may have removed
// the block's last message between two reads of the block.
void Keep(const absl::optional<LastMessage>& seen, absl::optional<LastMessage>* kept) {
  if (seen.has_value() && (!kept->has_value() || seen->offset > (*kept)->offset)) *kept = seen;
}

// The first range that ends after `from`. `ranges` are those of one block: ascending, disjoint, not
// touching.
template <typename Ranges>
auto FirstBehind(uint64_t from, Ranges& ranges) {
  return std::upper_bound(ranges.begin(), ranges.end(), from,
                          [](uint64_t value, const Range& range) { return value < ToOf(range); });
}

bool Overlaps(const Range& range, const std::vector<Range>& ranges) {
  const auto next = FirstBehind(FromOf(range), ranges);
  return next != ranges.end() && FromOf(*next) < ToOf(range);
}

// REQUIRES: !Overlaps(range, *ranges)
void Insert(const Range& range, std::vector<Range>* ranges) {
  const auto next = FirstBehind(FromOf(range), *ranges);
  const bool joins_next = next != ranges->end() && FromOf(*next) == ToOf(range);
  const bool joins_before = next != ranges->begin() && ToOf(*std::prev(next)) == FromOf(range);
  const auto end_at = [](const Range& last, Range* joined) {
    joined->to = last.to;
    joined->to_line = last.to_line;
  };
  if (joins_before && joins_next) {
    end_at(*next, &*std::prev(next));
    ranges->erase(next);
  } else if (joins_before) {
    end_at(range, &*std::prev(next));
  } else if (joins_next) {
    next->from = range.from;
    next->from_line = range.from_line;
  } else {
    ranges->insert(next, range);
  }
}

// What is wrong with the range itself; empty if nothing is.
std::string Malformation(const ProvenanceRange& range) {
  if (range.ends_split()) {
    if (range.to() != range.from()) return "the end of a split must not hold records";
    if (range.has_block_end() && range.block_end() < range.block())
      return "it ends before it begins";
    return "";
  }
  if (!range.has_block_end()) {
    if (range.from() < range.to() && range.to() <= range.block_rows()) return "";
    return absl::StrCat("the block has ", Counted(range.block_rows(), "record"));
  }
  const uint64_t slots = range.block_end() - range.block();
  if (range.block_end() <= range.block() || slots > std::numeric_limits<uint32_t>::max()) {
    return "a block has 1 to 2^32 - 1 offsets";
  }
  const Range places = RangeOf(range);
  if (FromOf(places) >= ToOf(places) || ToOf(places) > PlaceOf(SizeOf(range), 0)) {
    return absl::StrCat("the block has ", slots, " slots");
  }
  if (!range.has_last_offset()) {
    return range.records() == 0 ? "" : "it has records, but its block has no last message";
  }
  const bool is_in_block =
      range.last_offset() >= range.block() && range.last_offset() < range.block_end();
  return is_in_block ? "" : "the block's last message is not in the block";
}

std::string TextOf(const ConsumedSplit::Offsets& offsets) {
  return absl::StrCat("[", offsets.first, ", ", offsets.end, ")");
}

}  // namespace

std::string NameOf(const ProvenanceRange& range) {
  if (range.ends_split()) return "the end";
  if (!range.has_block_end()) {
    return absl::StrCat("records [", range.from(), ", ", range.to(), ") of block ", range.block());
  }
  return absl::StrCat("slot ", range.from(), " line ", range.from_line(), " to slot ", range.to(),
                      " line ", range.to_line(), " of the block of offsets ",
                      TextOf({range.block(), range.block_end()}));
}

std::string ConsumedSplit::Refusal(const ProvenanceRange& range) const {
  std::string wrong = Malformation(range);
  if (!wrong.empty()) return wrong;
  const bool is_new = rows_ == 0 && !has_end() && done_blocks_.empty() && blocks_.empty();
  if (is_new) return "";
  if (is_topic_ != range.has_block_end()) {
    return "a split is a piece of a file or a topic partition, not both";
  }
  if (range.ends_split()) return RefusalOfEnd(range);
  if (split_rows_.has_value() && RowsOf(range) > *split_rows_ - rows_) {
    return absl::StrCat("the split has only ", Counted(*split_rows_, "record"));
  }
  if (bounds_.has_value() && (range.block() < bounds_->first || range.block_end() > bounds_->end)) {
    return absl::StrCat("the split has only the offsets ", TextOf(*bounds_));
  }
  return RefusalOfBlock(range);
}

std::string ConsumedSplit::RefusalOfEnd(const ProvenanceRange& end) const {
  if (has_end()) return "the split's end was consumed before";
  if (!is_topic_) {
    if (end.split_rows() >= rows_) return "";
    return absl::StrCat("it names ", Counted(end.split_rows(), "record"), ", but ", rows_,
                        rows_ == 1 ? " was" : " were", " consumed");
  }
  const bool leaves_done = !done_blocks_.empty() && (done_blocks_.first() < end.block() ||
                                                     done_blocks_.last() >= end.block_end());
  const bool leaves_open = !blocks_.empty() && (blocks_.begin()->first < end.block() ||
                                                blocks_.rbegin()->second.end > end.block_end());
  if (!leaves_done && !leaves_open) return "";
  return absl::StrCat("it names the offsets ", TextOf({end.block(), end.block_end()}),
                      ", but other offsets were consumed");
}

std::string ConsumedSplit::RefusalOfBlock(const ProvenanceRange& range) const {
  const uint64_t first = range.block();
  const uint64_t end = EndOf(range);
  if (done_blocks_.Overlaps(first, end - 1)) {
    return is_topic_ ? "some of the block's offsets are consumed already"
                     : "the whole block is consumed already";
  }
  const auto next = blocks_.lower_bound(first);
  if (next == blocks_.end() || next->first != first) {
    const bool overlaps_next = next != blocks_.end() && next->first < end;
    const bool overlaps_last = next != blocks_.begin() && std::prev(next)->second.end > first;
    if (!overlaps_next && !overlaps_last) return "";
    const auto other = overlaps_next ? next : std::prev(next);
    return absl::StrCat("it overlaps the block of offsets ",
                        TextOf({other->first, other->second.end}));
  }
  const Block& block = next->second;
  if (block.size != SizeOf(range)) {
    return absl::StrCat("the block has ", Counted(SizeOf(range), is_topic_ ? "slot" : "record"),
                        ", but ", block.size, " according to an earlier range");
  }
  if (Overlaps(RangeOf(range), block.consumed)) return "trained twice";
  if (block.last_message.has_value() && range.has_last_offset() &&
      block.last_message->offset == range.last_offset() &&
      block.last_message->hash != range.last_hash()) {
    return absl::StrCat("the message at offset ", range.last_offset(),
                        " differs from the earlier one at that offset");
  }
  return "";
}

void ConsumedSplit::Add(const ProvenanceRange& range) {
  is_topic_ = range.has_block_end();
  if (range.ends_split()) {
    if (is_topic_) {
      bounds_ = Offsets{range.block(), range.block_end()};
    } else {
      split_rows_ = range.split_rows();
    }
    return;
  }
  Block& block = blocks_[range.block()];
  block.end = EndOf(range);
  block.size = SizeOf(range);
  Insert(RangeOf(range), &block.consumed);
  Keep(LastMessageOf(range), &block.last_message);
  rows_ += RowsOf(range);
  if (block.consumed[0] == Range{0, block.size}) {
    Keep(block.last_message, &last_message_);
    done_blocks_.Insert(range.block(), block.end - 1);
    blocks_.erase(range.block());
  }
}

uint64_t ConsumedSplit::RowsOfRanges() const {
  uint64_t rows = 0;
  if (is_topic_) return rows;
  for (const auto& [number, block] : blocks_) {
    for (const Range& range : block.consumed) rows += range.to - range.from;
  }
  return rows;
}

// Adds the ranges of `other` one by one, so that all checks of Add apply here, too. Only whole
// blocks, which have no ranges, are merged in another way.
std::string ConsumedSplit::Merge(const ConsumedSplit& other) {
  std::string wrong = MergeWholeBlocks(other);
  if (!wrong.empty()) return wrong;
  const auto add = [this](const ProvenanceRange& range) {
    const std::string why = Refusal(range);
    if (!why.empty()) return absl::StrCat(NameOf(range), ": ", why);
    Add(range);
    return std::string();
  };
  for (const auto& [number, block] : other.blocks_) {
    ProvenanceRange range;
    range.set_block(number);
    if (is_topic_) range.set_block_end(block.end);
    if (!is_topic_) range.set_block_rows(block.size);
    if (block.last_message.has_value()) {
      range.set_last_offset(block.last_message->offset);
      range.set_last_hash(block.last_message->hash);
    }
    for (const Range& consumed : block.consumed) {
      range.set_from(consumed.from);
      range.set_to(consumed.to);
      range.set_from_line(consumed.from_line);
      range.set_to_line(consumed.to_line);
      wrong = add(range);
      if (!wrong.empty()) return wrong;
    }
  }
  if (!other.has_end()) return "";
  ProvenanceRange end;
  end.set_ends_split(true);
  if (other.bounds_.has_value()) {
    end.set_block(other.bounds_->first);
    end.set_block_end(other.bounds_->end);
  } else {
    end.set_split_rows(*other.split_rows_);
  }
  return add(end);
}

// Adds the records of whole blocks and, for a partition, also those of open blocks, because the
// ranges of a partition do not say how many records they hold.
std::string ConsumedSplit::MergeWholeBlocks(const ConsumedSplit& other) {
  if (is_topic_ != other.is_topic_) {
    return "a split is a piece of a file or a topic partition, not both";
  }
  const uint64_t rows = other.rows_ - other.RowsOfRanges();
  if (split_rows_.has_value() && rows > *split_rows_ - rows_) {
    return absl::StrCat("the split has only ", Counted(*split_rows_, "record"));
  }
  for (const auto& [first, last] : other.done_blocks_) {
    const auto next = blocks_.upper_bound(last);
    const bool overlaps_open = next != blocks_.begin() && std::prev(next)->second.end > first;
    if (done_blocks_.Overlaps(first, last) || overlaps_open) {
      return absl::StrCat("records of blocks ", first, " to ", last, " were trained twice");
    }
    if (bounds_.has_value() && (first < bounds_->first || last >= bounds_->end)) {
      return absl::StrCat("the split has only the offsets ", TextOf(*bounds_));
    }
    done_blocks_.Insert(first, last);
  }
  rows_ += rows;
  Keep(other.last_message_, &last_message_);
  return "";
}

bool ConsumedSplit::is_done() const {
  if (!bounds_.has_value()) return split_rows_ == rows_;
  return bounds_->first == bounds_->end || done_blocks_.Are(bounds_->first, bounds_->end - 1);
}

bool ConsumedSplit::IsBlockBegun(uint64_t number) const {
  if (done_blocks_.Holds(number)) return true;
  const auto next = blocks_.upper_bound(number);
  if (next == blocks_.begin() || std::prev(next)->second.end <= number) return false;
  return FromOf(std::prev(next)->second.consumed[0]) == 0;
}

std::vector<Range> ConsumedSplit::Consumed(uint64_t number, uint32_t size) const {
  if (done_blocks_.Holds(number)) return {{0, size}};
  const auto block = blocks_.find(number);
  return block == blocks_.end() ? std::vector<Range>() : block->second.consumed;
}

std::vector<ConsumedSplit::Offsets> ConsumedSplit::OpenBlocks() const {
  std::vector<Offsets> open;
  for (const auto& [first, block] : blocks_) open.push_back({first, block.end});
  return open;
}

std::vector<ConsumedSplit::Offsets> ConsumedSplit::DoneBlocks(uint64_t from) const {
  std::vector<Offsets> done;
  for (const auto& [first, last] : done_blocks_) {
    if (last >= from) done.push_back({std::max(first, from), last + 1});
  }
  return done;
}

size_t ConsumedSplit::PiecesBehind() const {
  size_t pieces = 0;
  uint64_t reached = 0;  // everything from the last piece's beginning to here is consumed
  const auto begin_piece = [&](uint64_t from) { pieces += pieces == 0 || from != reached ? 1 : 0; };
  auto done = done_blocks_.begin();
  const auto pass_done_before = [&](uint64_t number) {
    for (; done != done_blocks_.end() && done->first < number; ++done) {
      begin_piece(done->first);
      reached = done->second + 1;
    }
  };
  constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();
  for (const auto& [first, block] : blocks_) {
    pass_done_before(first);
    for (const Range& range : block.consumed) {
      begin_piece(FromOf(range) == 0 ? first : kNowhere);
      reached = ToOf(range) == PlaceOf(block.size, 0) ? block.end : kNowhere - 1;
    }
  }
  pass_done_before(kNowhere);
  return pieces == 0 ? 0 : pieces - 1;
}

void ConsumedSplit::ToState(SplitLedger* state) const {
  const auto write_last = [](const absl::optional<LastMessage>& last, auto* to) {
    if (!last.has_value()) return;
    to->set_last_offset(last->offset);
    to->set_last_hash(last->hash);
  };
  state->set_rows(rows_);
  if (split_rows_.has_value()) state->set_split_rows(*split_rows_);
  if (bounds_.has_value()) {
    state->set_first_offset(bounds_->first);
    state->set_end_offset(bounds_->end);
  }
  write_last(last_message_, state);
  done_blocks_.Write(state->mutable_done_blocks());
  for (const auto& [number, block] : blocks_) {
    BlockLedger* saved = state->add_blocks();
    saved->set_block(number);
    if (is_topic_) saved->set_block_end(block.end);
    if (!is_topic_) saved->set_block_rows(block.size);
    write_last(block.last_message, saved);
    bool has_lines = false;
    for (const Range& range : block.consumed) {
      saved->add_from_to(range.from);
      saved->add_from_to(range.to);
      saved->add_lines(range.from_line);
      saved->add_lines(range.to_line);
      has_lines = has_lines || range.from_line > 0 || range.to_line > 0;
    }
    if (!has_lines) saved->clear_lines();
  }
}

absl::Status ConsumedSplit::ReadBlock(const BlockLedger& state) {
  const int places = state.from_to_size();
  if (places == 0 || places % 2 != 0) {
    return absl::DataLossError("has a block without ranges or with half a range");
  }
  if (state.lines_size() != 0 && state.lines_size() != places) {
    return absl::DataLossError("has more or fewer lines than positions");
  }
  ProvenanceRange range;
  range.set_block(state.block());
  if (is_topic_) range.set_block_end(state.block_end());
  if (!is_topic_) range.set_block_rows(state.block_rows());
  if (state.has_last_offset()) {
    range.set_last_offset(state.last_offset());
    range.set_last_hash(state.last_hash());
  }
  const auto line = [&](int i) { return state.lines_size() == 0 ? 0 : state.lines(i); };
  uint64_t to = 0;
  for (int i = 0; i < places; i += 2) {
    range.set_from(state.from_to(i));
    range.set_to(state.from_to(i + 1));
    range.set_from_line(line(i));
    range.set_to_line(line(i + 1));
    const Range places_of = RangeOf(range);
    // Ranges that touch would have been saved as one.
    if (i > 0 && FromOf(places_of) <= to) {
      return absl::DataLossError("has ranges that touch, overlap or leave their block");
    }
    to = ToOf(places_of);
    std::string wrong = Malformation(range);
    if (wrong.empty()) wrong = RefusalOfBlock(range);
    if (!wrong.empty())
      return absl::DataLossError(absl::StrCat("has ", NameOf(range), ": ", wrong));
    Add(range);
  }
  return blocks_.count(state.block()) > 0
             ? absl::OkStatus()
             : absl::DataLossError("lists a whole block among the partial ones");
}

absl::Status ConsumedSplit::CheckRows() const {
  if (is_done() || (done_blocks_.empty() && blocks_.empty() && !has_end())) {
    return absl::DataLossError("is whole or untouched, but is not listed as such");
  }
  if (split_rows_.has_value() && rows_ > *split_rows_) {
    return absl::DataLossError("has more records than its recorded end allows");
  }
  if (is_topic_) return absl::OkStatus();
  // Every whole block of a file has at least one record.
  uint64_t fewest_rows = RowsOfRanges();
  for (const auto& [first, last] : done_blocks_) fewest_rows += last - first + 1;
  const bool sums_up = done_blocks_.empty() ? rows_ == fewest_rows : rows_ >= fewest_rows;
  return sums_up ? absl::OkStatus()
                 : absl::DataLossError(
                       "has a number of records that does not match the sum of its ranges");
}

absl::StatusOr<ConsumedSplit> ConsumedSplit::FromState(const SplitLedger& state) {
  ConsumedSplit split;
  // Distinguishes a topic partition from a file even if only whole blocks are left. In that case a
  // partition either has a last message, because a block with records has one, or has no records,
  // whereas every whole block of a file has a record.
  split.is_topic_ = state.has_first_offset() || state.has_last_offset() ||
                    (state.blocks_size() > 0 && state.blocks(0).has_block_end()) ||
                    (state.rows() == 0 && state.done_blocks_size() > 0);
  RETURN_IF_ERROR(split.done_blocks_.Read(state.done_blocks()));
  uint64_t block = 0;
  for (const BlockLedger& saved : state.blocks()) {
    if (!split.blocks_.empty() && saved.block() <= block) {
      return absl::DataLossError("has a block twice, or blocks out of order");
    }
    block = saved.block();
    if (saved.has_block_end() != split.is_topic_) {
      return absl::DataLossError("has blocks of a file and of a topic partition");
    }
    RETURN_IF_ERROR(split.ReadBlock(saved));
  }
  split.rows_ = state.rows();
  if (state.has_split_rows()) split.split_rows_ = state.split_rows();
  if (state.has_last_offset()) {
    split.last_message_ = LastMessage{state.last_offset(), state.last_hash()};
  }
  if (state.has_first_offset()) {
    ProvenanceRange end;
    end.set_ends_split(true);
    end.set_block(state.first_offset());
    end.set_block_end(state.end_offset());
    std::string wrong = Malformation(end);
    if (wrong.empty()) wrong = split.RefusalOfEnd(end);
    if (!wrong.empty()) return absl::DataLossError(absl::StrCat("has ", NameOf(end), ": ", wrong));
    split.Add(end);
  }
  RETURN_IF_ERROR(split.CheckRows());
  return split;
}

}  // namespace satrap
