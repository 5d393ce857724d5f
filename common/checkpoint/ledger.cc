#include "common/checkpoint/ledger.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

// Intervals: ascending, disjoint pairs [first, last], kept as long as possible.
template <typename Intervals>
bool Holds(const Intervals& intervals, uint64_t value) {
  const auto after = intervals.upper_bound(value);
  return after != intervals.begin() && std::prev(after)->second >= value;
}

// REQUIRES: !Holds(*intervals, value)
template <typename Intervals>
void Insert(uint64_t value, Intervals* intervals) {
  auto place = intervals->emplace(value, value).first;
  const auto next = std::next(place);
  if (next != intervals->end() && next->first == value + 1) {
    place->second = next->second;
    intervals->erase(next);
  }
  if (place != intervals->begin()) {
    const auto before = std::prev(place);
    if (before->second + 1 == value) {
      before->second = place->second;
      intervals->erase(place);
    }
  }
}

// Ranges of one block: ascending, disjoint, not touching. The first that ends behind `from`.
template <typename Ranges>
auto FirstBehind(uint32_t from, Ranges& ranges) {
  return std::upper_bound(
      ranges.begin(), ranges.end(), from,
      [](uint32_t value, const Ledger::Range& range) { return value < range.to; });
}

bool Overlaps(Ledger::Range range, const std::vector<Ledger::Range>& ranges) {
  const auto next = FirstBehind(range.from, ranges);
  return next != ranges.end() && next->from < range.to;
}

// REQUIRES: !Overlaps(range, *ranges)
void Insert(Ledger::Range range, std::vector<Ledger::Range>* ranges) {
  const auto next = FirstBehind(range.from, *ranges);
  const bool joins_next = next != ranges->end() && next->from == range.to;
  const bool joins_before = next != ranges->begin() && std::prev(next)->to == range.from;
  if (joins_before && joins_next) {
    std::prev(next)->to = next->to;
    ranges->erase(next);
  } else if (joins_before) {
    std::prev(next)->to = range.to;
  } else if (joins_next) {
    next->from = range.from;
  } else {
    ranges->insert(next, range);
  }
}

std::string NameOf(uint32_t epoch, const ProvenanceRange& range) {
  if (range.ends_split())
    return absl::StrCat("the end of split ", range.split(), " in epoch ", epoch);
  return absl::StrCat("records [", range.from(), ", ", range.to(), ") of block ", range.block(),
                      " of split ", range.split(), " in epoch ", epoch);
}

uint64_t SumOf(const std::vector<Ledger::Range>& ranges) {
  uint64_t rows = 0;
  for (const Ledger::Range& range : ranges) rows += range.to - range.from;
  return rows;
}

// Pairs as a message holds them.
template <typename Intervals, typename Field>
void Write(const Intervals& intervals, Field* field) {
  for (const auto& [first, last] : intervals) {
    field->Add(first);
    field->Add(last);
  }
}

template <typename Field, typename Intervals>
absl::Status Read(const Field& field, Intervals* intervals) {
  if (field.size() % 2 != 0) return absl::DataLossError("has half a pair");
  for (int i = 0; i < field.size(); i += 2) {
    const uint64_t first = field.Get(i);
    const uint64_t last = field.Get(i + 1);
    // Neighbours would have been one pair.
    const bool ascends = intervals->empty() || (first > intervals->rbegin()->second &&
                                                first - intervals->rbegin()->second > 1);
    if (last < first || !ascends) return absl::DataLossError("has pairs that do not ascend");
    intervals->emplace_hint(intervals->end(), first, last);
  }
  return absl::OkStatus();
}

absl::Status Contradiction(uint32_t epoch, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the ledger contradicts itself: epoch ", epoch, " ", what));
}

}  // namespace

std::string Ledger::Refusal(uint32_t epoch_number, const ProvenanceRange& range) const {
  const bool is_end = range.ends_split();
  if (is_end && range.to() != range.from()) return "the end of a split holds records";
  if (!is_end && (range.from() >= range.to() || range.to() > range.block_rows())) {
    return absl::StrCat("the block has ", range.block_rows(), " records");
  }
  const auto found = epochs_.find(epoch_number);
  if (found == epochs_.end()) return "";
  const Epoch& epoch = found->second;
  if (epoch.is_closed()) return "the epoch is over";
  if (Holds(epoch.done_splits, range.split())) return "the split is consumed whole";
  const auto found_split = epoch.splits.find(range.split());
  if (found_split == epoch.splits.end()) return "";
  const Split& split = found_split->second;
  if (is_end) {
    if (split.split_rows.has_value()) return "the split's end was consumed before";
    if (range.split_rows() >= split.rows) return "";
    return absl::StrCat("it names ", range.split_rows(), " records, and ", split.rows,
                        " were consumed");
  }
  if (split.split_rows.has_value() && range.to() - range.from() > *split.split_rows - split.rows) {
    return absl::StrCat("the split has ", *split.split_rows, " records");
  }
  if (Holds(split.done_blocks, range.block())) return "the block is consumed whole";
  const auto block = split.blocks.find(range.block());
  if (block == split.blocks.end()) return "";
  if (block->second.rows != range.block_rows()) {
    return absl::StrCat("the block has ", range.block_rows(), " records, and ", block->second.rows,
                        " by an earlier range");
  }
  if (Overlaps({range.from(), range.to()}, block->second.consumed)) return "trained twice";
  return "";
}

absl::Status Ledger::Check(uint32_t epoch, const ProvenanceRange& range) const {
  const std::string why = Refusal(epoch, range);
  if (why.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the ledger refuses ", NameOf(epoch, range), ": ", why));
}

absl::Status Ledger::Add(uint32_t epoch_number, const ProvenanceRange& range) {
  RETURN_IF_ERROR(Check(epoch_number, range));
  Epoch& epoch = epochs_[epoch_number];
  Split& split = epoch.splits[range.split()];
  if (range.ends_split()) {
    split.split_rows = range.split_rows();
  } else {
    const Range added = {range.from(), range.to()};
    Block& block = split.blocks[range.block()];
    block.rows = range.block_rows();
    Insert(added, &block.consumed);
    if (block.consumed[0] == Range{0, block.rows}) {
      split.blocks.erase(range.block());
      Insert(range.block(), &split.done_blocks);
    }
    split.rows += added.to - added.from;
    epoch.totals.rows += added.to - added.from;
  }
  epoch.totals.bad_records += range.bad_records();
  epoch.totals.empty_lines += range.empty_lines();
  FinishSplit(range.split(), &epoch);
  return absl::OkStatus();
}

void Ledger::FinishSplit(uint32_t number, Epoch* epoch) {
  const auto split = epoch->splits.find(number);
  if (split->second.split_rows != split->second.rows) return;
  epoch->splits.erase(split);
  Insert(number, &epoch->done_splits);
}

absl::Status Ledger::Merge(const Ledger& other) {
  for (const auto& [number, theirs] : other.epochs_) {
    const auto ours = epochs_.find(number);
    if (ours == epochs_.end()) {
      epochs_.emplace(number, theirs);
    } else if (theirs.is_closed() || ours->second.is_closed()) {
      return absl::InternalError(
          absl::StrCat("the ledger refuses records of epoch ", number, ": the epoch is over"));
    } else {
      RETURN_IF_ERROR(MergeEpoch(number, theirs));
    }
  }
  return absl::OkStatus();
}

// By way of ranges, so that every check of Add holds here, too.
absl::Status Ledger::MergeEpoch(uint32_t number, const Epoch& theirs) {
  Epoch& epoch = epochs_[number];
  for (const auto& [first, last] : theirs.done_splits) {
    for (uint64_t split = first; split <= last; ++split) {
      if (Holds(epoch.done_splits, split) || epoch.splits.count(static_cast<uint32_t>(split)) > 0) {
        return absl::InternalError(absl::StrCat("the ledger refuses split ", split, " of epoch ",
                                                number, ": records of it were trained twice"));
      }
      Insert(split, &epoch.done_splits);
    }
  }
  // The rows of whole splits are known only as a part of the total; those of others are counted as
  // they are added.
  uint64_t rows_of_whole_splits = theirs.totals.rows;
  for (const auto& [split_number, split] : theirs.splits) {
    rows_of_whole_splits -= split.rows;
    ProvenanceRange range;
    range.set_split(split_number);
    for (const auto& [block_number, block] : split.blocks) {
      range.set_block(block_number);
      range.set_block_rows(block.rows);
      for (const Range& consumed : block.consumed) {
        range.set_from(consumed.from);
        range.set_to(consumed.to);
        RETURN_IF_ERROR(Add(number, range));
      }
    }
    RETURN_IF_ERROR(MergeWholeBlocks(number, split_number, split));
    if (split.split_rows.has_value()) {
      ProvenanceRange end;
      end.set_split(split_number);
      end.set_ends_split(true);
      end.set_split_rows(*split.split_rows);
      RETURN_IF_ERROR(Add(number, end));
    }
  }
  epoch.totals.rows += rows_of_whole_splits;
  epoch.totals.bad_records += theirs.totals.bad_records;
  epoch.totals.empty_lines += theirs.totals.empty_lines;
  return absl::OkStatus();
}

absl::Status Ledger::MergeWholeBlocks(uint32_t epoch_number, uint32_t split_number,
                                      const Split& theirs) {
  if (theirs.done_blocks.empty()) return absl::OkStatus();
  const auto refused = [&](absl::string_view why) {
    return absl::InternalError(absl::StrCat("the ledger refuses blocks of split ", split_number,
                                            " of epoch ", epoch_number, ": ", why));
  };
  Epoch& epoch = epochs_[epoch_number];
  if (Holds(epoch.done_splits, split_number)) return refused("the split is consumed whole");
  uint64_t rows = theirs.rows;  // of whole blocks
  for (const auto& [number, block] : theirs.blocks) rows -= SumOf(block.consumed);
  Split& split = epoch.splits[split_number];
  if (split.split_rows.has_value() && rows > *split.split_rows - split.rows) {
    return refused(absl::StrCat("the split has ", *split.split_rows, " records"));
  }
  for (const auto& [first, last] : theirs.done_blocks) {
    for (uint64_t block = first; block <= last; ++block) {
      if (Holds(split.done_blocks, block) || split.blocks.count(block) > 0) {
        return refused("records of them were trained twice");
      }
      Insert(block, &split.done_blocks);
    }
  }
  split.rows += rows;
  epoch.totals.rows += rows;
  FinishSplit(split_number, &epoch);
  return absl::OkStatus();
}

void Ledger::CloseEpochsBefore(uint32_t epoch) {
  for (auto& [number, each] : epochs_) {
    if (number >= epoch) break;
    each.done_splits.clear();
    each.splits.clear();
  }
}

const Ledger::Split* Ledger::FindSplit(uint32_t epoch, uint32_t split) const {
  const auto of_epoch = epochs_.find(epoch);
  if (of_epoch == epochs_.end()) return nullptr;
  const auto of_split = of_epoch->second.splits.find(split);
  return of_split == of_epoch->second.splits.end() ? nullptr : &of_split->second;
}

bool Ledger::IsSplitDone(uint32_t epoch, uint32_t split) const {
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end()) return false;
  return found->second.is_closed() || Holds(found->second.done_splits, split);
}

bool Ledger::IsSplitEndConsumed(uint32_t epoch, uint32_t split_number) const {
  const Split* split = FindSplit(epoch, split_number);
  return split != nullptr ? split->split_rows.has_value() : IsSplitDone(epoch, split_number);
}

bool Ledger::IsBlockBegun(uint32_t epoch, uint32_t split_number, uint64_t block_number) const {
  const Split* split = FindSplit(epoch, split_number);
  if (split == nullptr) return IsSplitDone(epoch, split_number);
  if (Holds(split->done_blocks, block_number)) return true;
  const auto block = split->blocks.find(block_number);
  return block != split->blocks.end() && block->second.consumed[0].from == 0;
}

std::vector<Ledger::Range> Ledger::Consumed(uint32_t epoch, uint32_t split_number,
                                            uint64_t block_number, uint32_t block_rows) const {
  const std::vector<Range> whole = {{0, block_rows}};
  const Split* split = FindSplit(epoch, split_number);
  if (split == nullptr) return IsSplitDone(epoch, split_number) ? whole : std::vector<Range>();
  if (Holds(split->done_blocks, block_number)) return whole;
  const auto block = split->blocks.find(block_number);
  return block == split->blocks.end() ? std::vector<Range>() : block->second.consumed;
}

Ledger::SplitRows Ledger::RowsOf(uint32_t epoch, uint32_t split_number) const {
  const Split* split = FindSplit(epoch, split_number);
  return split == nullptr ? SplitRows() : SplitRows{split->rows, split->split_rows};
}

Ledger::Totals Ledger::OfEpoch(uint32_t epoch) const {
  const auto found = epochs_.find(epoch);
  return found == epochs_.end() ? Totals() : found->second.totals;
}

Ledger::Totals Ledger::OfAll() const {
  Totals all;
  for (const auto& [number, epoch] : epochs_) {
    all.rows += epoch.totals.rows;
    all.bad_records += epoch.totals.bad_records;
    all.empty_lines += epoch.totals.empty_lines;
  }
  return all;
}

LedgerState Ledger::ToState() const {
  LedgerState state;
  for (const auto& [number, epoch] : epochs_) {
    EpochLedger* to = state.add_epochs();
    to->set_epoch(number);
    to->set_rows(epoch.totals.rows);
    to->set_bad_records(epoch.totals.bad_records);
    to->set_empty_lines(epoch.totals.empty_lines);
    Write(epoch.done_splits, to->mutable_done_splits());
    for (const auto& [split_number, split] : epoch.splits) {
      SplitLedger* saved = to->add_splits();
      saved->set_split(split_number);
      saved->set_rows(split.rows);
      if (split.split_rows.has_value()) saved->set_split_rows(*split.split_rows);
      Write(split.done_blocks, saved->mutable_done_blocks());
      for (const auto& [block_number, block] : split.blocks) {
        BlockLedger* ranges = saved->add_blocks();
        ranges->set_block(block_number);
        ranges->set_block_rows(block.rows);
        for (const Range& range : block.consumed) {
          ranges->add_from_to(range.from);
          ranges->add_from_to(range.to);
        }
      }
    }
  }
  return state;
}

// Errors say what is wrong; the caller names the split.
absl::Status Ledger::ReadSplit(const SplitLedger& saved, Split* split) {
  split->rows = saved.rows();
  if (saved.has_split_rows()) split->split_rows = saved.split_rows();
  RETURN_IF_ERROR(Read(saved.done_blocks(), &split->done_blocks));
  // Every whole block has a record at least.
  uint64_t fewest_rows = 0;
  for (const auto& [first, last] : split->done_blocks) fewest_rows += last - first + 1;
  for (const BlockLedger& ranges : saved.blocks()) {
    const bool ascends = split->blocks.empty() || ranges.block() > split->blocks.rbegin()->first;
    if (!ascends || Holds(split->done_blocks, ranges.block())) {
      return absl::DataLossError("has blocks twice or out of order");
    }
    if (ranges.from_to_size() == 0 || ranges.from_to_size() % 2 != 0) {
      return absl::DataLossError("has a block without ranges or with half a range");
    }
    Block& block = split->blocks[ranges.block()];
    block.rows = ranges.block_rows();
    for (int i = 0; i < ranges.from_to_size(); i += 2) {
      const Range range = {ranges.from_to(i), ranges.from_to(i + 1)};
      const bool is_behind = block.consumed.empty() || range.from > block.consumed.back().to;
      if (range.from >= range.to || range.to > block.rows || !is_behind) {
        return absl::DataLossError("has ranges that touch, overlap or leave their block");
      }
      block.consumed.push_back(range);
    }
    if (block.consumed[0] == Range{0, block.rows}) {
      return absl::DataLossError("has a whole block among those that are not");
    }
    fewest_rows += SumOf(block.consumed);
  }
  const bool sums_up =
      split->done_blocks.empty() ? split->rows == fewest_rows : split->rows >= fewest_rows;
  if (!sums_up) return absl::DataLossError("has another number of records than its ranges");
  if (split->split_rows.has_value() ? split->rows >= *split->split_rows : split->rows == 0) {
    return absl::DataLossError("is whole or untouched, but not listed so");
  }
  return absl::OkStatus();
}

absl::StatusOr<Ledger> Ledger::FromState(const LedgerState& state) {
  Ledger ledger;
  for (const EpochLedger& from : state.epochs()) {
    if (!ledger.epochs_.empty() && from.epoch() <= ledger.epochs_.rbegin()->first) {
      return Contradiction(from.epoch(), "is out of order");
    }
    Epoch& epoch = ledger.epochs_[from.epoch()];
    epoch.totals = {from.rows(), from.bad_records(), from.empty_lines()};
    if (const absl::Status read = Read(from.done_splits(), &epoch.done_splits); !read.ok()) {
      return Contradiction(from.epoch(), read.message());
    }
    uint64_t rows = 0;  // of the splits that are not whole
    for (const SplitLedger& saved : from.splits()) {
      const bool ascends = epoch.splits.empty() || saved.split() > epoch.splits.rbegin()->first;
      if (!ascends || Holds(epoch.done_splits, saved.split())) {
        return Contradiction(from.epoch(), "has splits twice or out of order");
      }
      const absl::Status read = ReadSplit(saved, &epoch.splits[saved.split()]);
      if (!read.ok()) {
        return Contradiction(from.epoch(),
                             absl::StrCat("split ", saved.split(), " ", read.message()));
      }
      rows += saved.rows();
    }
    const bool sums_up =
        epoch.done_splits.empty() && !epoch.is_closed() ? rows == from.rows() : rows <= from.rows();
    if (!sums_up)
      return Contradiction(from.epoch(), "has another number of records than its splits");
  }
  return ledger;
}

}  // namespace satrap
