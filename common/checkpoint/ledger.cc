#include "common/checkpoint/ledger.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
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

// Ranges of one block: ascending, disjoint, not touching. False, and nothing changed, if the new
// one overlaps another.
bool Insert(Ledger::Range range, std::vector<Ledger::Range>* ranges) {
  auto next = std::find_if(ranges->begin(), ranges->end(),
                           [&](const Ledger::Range& each) { return each.from >= range.from; });
  if (next != ranges->end() && next->from < range.to) return false;
  if (next != ranges->begin() && std::prev(next)->to > range.from) return false;
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
  return true;
}

std::string NameOf(uint32_t epoch, const ProvenanceRange& range) {
  return absl::StrCat("records [", range.from(), ", ", range.to(), ") of block ", range.block(),
                      " of split ", range.split(), " in epoch ", epoch);
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
  if (field.size() % 2 != 0) return absl::DataLossError("the ledger has half a pair");
  for (int i = 0; i < field.size(); i += 2) {
    const uint64_t first = field.Get(i);
    const uint64_t last = field.Get(i + 1);
    const bool ascends = intervals->empty() || intervals->rbegin()->second + 1 < first;
    if (last < first || !ascends) return absl::DataLossError("pairs of the ledger do not ascend");
    intervals->emplace_hint(intervals->end(), first, last);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Ledger::Add(uint32_t epoch_number, const ProvenanceRange& range) {
  Epoch& epoch = epochs_[epoch_number];
  const auto refused = [&](absl::string_view why) {
    return absl::InternalError(
        absl::StrCat("the ledger refuses ", NameOf(epoch_number, range), ": ", why));
  };
  if (Holds(epoch.done_splits, range.split())) return refused("the split is consumed whole");
  Split& split = epoch.splits[range.split()];
  if (range.ends_split()) {
    if (range.to() != range.from()) return refused("the end of a split holds records");
    if (split.split_rows.has_value()) return refused("the split's end was consumed before");
    if (range.split_rows() < split.rows) return refused("more records were consumed than it names");
    split.split_rows = range.split_rows();
  } else {
    if (range.from() >= range.to() || range.to() > range.block_rows()) {
      return refused(absl::StrCat("the block has ", range.block_rows(), " records"));
    }
    const uint64_t rows = range.to() - range.from();
    if (split.split_rows.has_value() && split.rows + rows > *split.split_rows) {
      return refused(absl::StrCat("the split has ", *split.split_rows, " records"));
    }
    if (Holds(split.done_blocks, range.block())) return refused("the block is consumed whole");
    Block& block = split.blocks[range.block()];
    if (block.rows != 0 && block.rows != range.block_rows()) {
      return refused(absl::StrCat("an earlier range says that the block has ", block.rows));
    }
    block.rows = range.block_rows();
    if (!Insert({range.from(), range.to()}, &block.consumed)) return refused("trained twice");
    if (block.consumed.size() == 1 && block.consumed[0] == Range{0, block.rows}) {
      split.blocks.erase(range.block());
      Insert(range.block(), &split.done_blocks);
    }
    split.rows += rows;
    epoch.totals.rows += rows;
  }
  epoch.totals.bad_records += range.bad_records();
  epoch.totals.empty_lines += range.empty_lines();
  if (split.split_rows == split.rows) {
    epoch.splits.erase(range.split());
    Insert(range.split(), &epoch.done_splits);
  }
  return absl::OkStatus();
}

// By way of ranges, so that every check of Add holds here, too.
absl::Status Ledger::Merge(const Ledger& other) {
  for (const auto& [number, theirs] : other.epochs_) {
    for (const auto& [first, last] : theirs.done_splits) {
      for (uint64_t split = first; split <= last; ++split) {
        Epoch& epoch = epochs_[number];
        if (Holds(epoch.done_splits, split) ||
            epoch.splits.count(static_cast<uint32_t>(split)) > 0) {
          return absl::InternalError(absl::StrCat("the ledger refuses split ", split, " of epoch ",
                                                  number, ": records of it were trained twice"));
        }
        Insert(split, &epoch.done_splits);
      }
    }
    // Rows of whole splits are known as totals only; those of ranges are counted by Add.
    uint64_t rows_of_ranges = 0;
    for (const auto& [split_number, split] : theirs.splits) {
      rows_of_ranges += split.rows;
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
    Totals& totals = epochs_[number].totals;
    totals.rows += theirs.totals.rows - rows_of_ranges;
    totals.bad_records += theirs.totals.bad_records;
    totals.empty_lines += theirs.totals.empty_lines;
  }
  return absl::OkStatus();
}

absl::Status Ledger::MergeWholeBlocks(uint32_t epoch_number, uint32_t split_number,
                                      const Split& theirs) {
  if (theirs.done_blocks.empty()) return absl::OkStatus();
  Epoch& epoch = epochs_[epoch_number];
  const auto twice = [&] {
    return absl::InternalError(absl::StrCat("the ledger refuses blocks of split ", split_number,
                                            " of epoch ", epoch_number,
                                            ": records of them were trained twice"));
  };
  if (Holds(epoch.done_splits, split_number)) return twice();
  Split& split = epoch.splits[split_number];
  uint64_t rows = theirs.rows;  // of whole blocks
  for (const auto& [number, block] : theirs.blocks) {
    for (const Range& consumed : block.consumed) rows -= consumed.to - consumed.from;
  }
  for (const auto& [first, last] : theirs.done_blocks) {
    for (uint64_t block = first; block <= last; ++block) {
      if (Holds(split.done_blocks, block) || split.blocks.count(block) > 0) return twice();
      Insert(block, &split.done_blocks);
    }
  }
  split.rows += rows;
  epoch.totals.rows += rows;
  if (split.split_rows == split.rows) {
    epoch.splits.erase(split_number);
    Insert(split_number, &epoch.done_splits);
  }
  return absl::OkStatus();
}

void Ledger::CloseEpochsBefore(uint32_t epoch) {
  for (auto& [number, each] : epochs_) {
    if (number >= epoch) break;
    each.done_splits.clear();
    each.splits.clear();
  }
}

bool Ledger::IsSplitDone(uint32_t epoch, uint32_t split) const {
  const auto found = epochs_.find(epoch);
  return found != epochs_.end() && Holds(found->second.done_splits, split);
}

std::vector<Ledger::Range> Ledger::Consumed(uint32_t epoch, uint32_t split, uint64_t block,
                                            uint32_t block_rows) const {
  const std::vector<Range> whole = {{0, block_rows}};
  const auto of_epoch = epochs_.find(epoch);
  if (of_epoch == epochs_.end()) return {};
  if (Holds(of_epoch->second.done_splits, split)) return whole;
  const auto of_split = of_epoch->second.splits.find(split);
  if (of_split == of_epoch->second.splits.end()) return {};
  if (Holds(of_split->second.done_blocks, block)) return whole;
  const auto of_block = of_split->second.blocks.find(block);
  if (of_block == of_split->second.blocks.end()) return {};
  return of_block->second.consumed;
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

absl::StatusOr<Ledger> Ledger::FromState(const LedgerState& state) {
  Ledger ledger;
  for (const EpochLedger& from : state.epochs()) {
    Epoch& epoch = ledger.epochs_[from.epoch()];
    epoch.totals = {from.rows(), from.bad_records(), from.empty_lines()};
    RETURN_IF_ERROR(Read(from.done_splits(), &epoch.done_splits));
    for (const SplitLedger& saved : from.splits()) {
      const auto contradicts = [&](absl::string_view what) {
        return absl::DataLossError(absl::StrCat("the ledger contradicts itself: split ",
                                                saved.split(), " of epoch ", from.epoch(), what));
      };
      if (Holds(epoch.done_splits, saved.split()) || epoch.splits.count(saved.split()) > 0) {
        return contradicts(" occurs twice");
      }
      Split& split = epoch.splits[saved.split()];
      split.rows = saved.rows();
      if (saved.has_split_rows()) split.split_rows = saved.split_rows();
      RETURN_IF_ERROR(Read(saved.done_blocks(), &split.done_blocks));
      uint64_t rows_of_ranges = 0;
      for (const BlockLedger& ranges : saved.blocks()) {
        Block& block = split.blocks[ranges.block()];
        block.rows = ranges.block_rows();
        if (ranges.from_to_size() % 2 != 0) return contradicts(" has half a range");
        for (int i = 0; i < ranges.from_to_size(); i += 2) {
          const Range range = {ranges.from_to(i), ranges.from_to(i + 1)};
          if (range.from >= range.to || range.to > block.rows || !Insert(range, &block.consumed)) {
            return contradicts(" has ranges that overlap or leave their block");
          }
          rows_of_ranges += range.to - range.from;
        }
      }
      if (rows_of_ranges > split.rows || split.rows > split.split_rows.value_or(split.rows)) {
        return contradicts(" has another number of records than its ranges");
      }
    }
  }
  return ledger;
}

}  // namespace satrap
