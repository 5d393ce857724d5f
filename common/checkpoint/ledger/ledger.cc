#include "common/checkpoint/ledger/ledger.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

absl::Status Refused(absl::string_view what, uint32_t split, uint32_t epoch,
                     absl::string_view why) {
  return absl::InternalError(absl::StrCat("the ledger refuses ", what, " of split ", split,
                                          " in epoch ", epoch, ": ", why));
}

}  // namespace

std::string Ledger::Refusal(uint32_t epoch_number, const ProvenanceRange& range) const {
  // A range of a split without an entry is checked against this empty split, because a range can be
  // wrong in itself. Making an entry would change the ledger even if the range is refused.
  static const ConsumedSplit* const nothing = new ConsumedSplit();
  const auto found = epochs_.find(epoch_number);
  if (found == epochs_.end()) return nothing->Refusal(range);
  const Epoch& epoch = found->second;
  if (epoch.is_closed()) return "the epoch is over";
  if (epoch.done_splits.Holds(range.split())) return "the whole split is consumed already";
  const auto split = epoch.splits.find(range.split());
  return (split == epoch.splits.end() ? *nothing : split->second).Refusal(range);
}

absl::Status Ledger::Check(uint32_t epoch, const ProvenanceRange& range) const {
  const std::string why = Refusal(epoch, range);
  if (why.empty()) return absl::OkStatus();
  return Refused(NameOf(range), range.split(), epoch, why);
}

absl::Status Ledger::Add(uint32_t epoch_number, const ProvenanceRange& range) {
  RETURN_IF_ERROR(Check(epoch_number, range));
  Epoch& epoch = epochs_[epoch_number];
  ConsumedSplit& split = epoch.splits[range.split()];
  epoch.totals.rows -= split.rows();
  split.Add(range);
  epoch.totals.rows += split.rows();
  epoch.totals.bad_records += range.bad_records();
  epoch.totals.empty_lines += range.empty_lines();
  FinishSplit(range.split(), &epoch);
  return absl::OkStatus();
}

void Ledger::FinishSplit(uint32_t number, Epoch* epoch) {
  const auto split = epoch->splits.find(number);
  if (!split->second.is_done()) return;
  // A done split is kept only as a number in an interval, so the ledger of a long run stays small.
  epoch->splits.erase(split);
  epoch->done_splits.Insert(number, number);
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
      RETURN_IF_ERROR(MergeEpoch(number, theirs, &ours->second));
    }
  }
  return absl::OkStatus();
}

absl::Status Ledger::MergeEpoch(uint32_t number, const Epoch& theirs, Epoch* epoch) {
  // Loaders and ranks never share a record, so whatever both sides hold was trained twice.
  for (const auto& [first, last] : theirs.done_splits) {
    for (uint64_t split = first; split <= last; ++split) {
      const uint32_t split_number = static_cast<uint32_t>(split);
      if (epoch->done_splits.Holds(split) || epoch->splits.count(split_number) > 0) {
        return Refused("all", split_number, number, "some of its records were trained twice");
      }
      epoch->done_splits.Insert(split, split);
    }
  }
  for (const auto& [split_number, split] : theirs.splits) {
    if (epoch->done_splits.Holds(split_number)) {
      return Refused("records", split_number, number, "the whole split is consumed already");
    }
    const auto ours = epoch->splits.find(split_number);
    if (ours == epoch->splits.end()) {
      epoch->splits.emplace(split_number, split);
      continue;
    }
    const std::string why = ours->second.Merge(split);
    if (!why.empty()) return Refused("what was consumed", split_number, number, why);
    FinishSplit(split_number, epoch);
  }
  epoch->totals.rows += theirs.totals.rows;
  epoch->totals.bad_records += theirs.totals.bad_records;
  epoch->totals.empty_lines += theirs.totals.empty_lines;
  return absl::OkStatus();
}

void Ledger::CloseEpochsBefore(uint32_t epoch) {
  // The totals stay, because the report shows them. An epoch that has only totals counts as closed.
  for (auto& [number, each] : epochs_) {
    if (number >= epoch) break;
    each.done_splits.clear();
    each.splits.clear();
  }
}

const ConsumedSplit* Ledger::FindSplit(uint32_t epoch, uint32_t split) const {
  const auto of_epoch = epochs_.find(epoch);
  if (of_epoch == epochs_.end()) return nullptr;
  const auto of_split = of_epoch->second.splits.find(split);
  return of_split == of_epoch->second.splits.end() ? nullptr : &of_split->second;
}

bool Ledger::IsSplitDone(uint32_t epoch, uint32_t split) const {
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end()) return false;
  return found->second.is_closed() || found->second.done_splits.Holds(split);
}

bool Ledger::IsSplitEndConsumed(uint32_t epoch, uint32_t split_number) const {
  const ConsumedSplit* split = FindSplit(epoch, split_number);
  return split != nullptr ? split->has_end() : IsSplitDone(epoch, split_number);
}

bool Ledger::IsBlockBegun(uint32_t epoch, uint32_t split_number, uint64_t block) const {
  const ConsumedSplit* split = FindSplit(epoch, split_number);
  return split != nullptr ? split->IsBlockBegun(block) : IsSplitDone(epoch, split_number);
}

std::vector<Ledger::Range> Ledger::Consumed(uint32_t epoch, uint32_t split_number, uint64_t block,
                                            uint32_t size) const {
  const ConsumedSplit* split = FindSplit(epoch, split_number);
  if (split != nullptr) return split->Consumed(block, size);
  if (IsSplitDone(epoch, split_number)) return {{0, size}};
  return {};
}

Ledger::SplitRows Ledger::RowsOf(uint32_t epoch, uint32_t split_number) const {
  const ConsumedSplit* split = FindSplit(epoch, split_number);
  return split == nullptr ? SplitRows() : SplitRows{split->rows(), split->split_rows()};
}

std::vector<Ledger::OpenBlock> Ledger::OpenBlocks(uint32_t epoch, uint32_t split_number) const {
  const ConsumedSplit* split = FindSplit(epoch, split_number);
  return split == nullptr ? std::vector<OpenBlock>() : split->OpenBlocks();
}

std::vector<Ledger::OpenBlock> Ledger::DoneBlocks(uint32_t epoch, uint32_t split_number,
                                                  uint64_t from) const {
  const ConsumedSplit* split = FindSplit(epoch, split_number);
  return split == nullptr ? std::vector<OpenBlock>() : split->DoneBlocks(from);
}

uint64_t Ledger::ContiguousEnd(uint32_t epoch, uint32_t split_number, uint64_t start) const {
  CHECK(!IsSplitDone(epoch, split_number)) << "split " << split_number << " is done";
  const ConsumedSplit* split = FindSplit(epoch, split_number);
  return split == nullptr ? start : split->ContiguousEnd(start);
}

absl::optional<Ledger::LastMessage> Ledger::LastMessageOf(uint32_t epoch,
                                                          uint32_t split_number) const {
  const ConsumedSplit* split = FindSplit(epoch, split_number);
  return split == nullptr ? absl::nullopt : split->last_message();
}

size_t Ledger::PiecesBehind() const {
  size_t pieces = 0;
  for (const auto& [number, epoch] : epochs_) {
    for (const auto& [split_number, split] : epoch.splits) pieces += split.PiecesBehind();
  }
  return pieces;
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
    epoch.done_splits.Write(to->mutable_done_splits());
    for (const auto& [split_number, split] : epoch.splits) {
      SplitLedger* saved = to->add_splits();
      saved->set_split(split_number);
      split.ToState(saved);
    }
  }
  return state;
}

// Errors say what is wrong; the caller names the epoch.
absl::Status Ledger::ReadEpoch(const EpochLedger& state, Epoch* epoch) {
  epoch->totals = {state.rows(), state.bad_records(), state.empty_lines()};
  RETURN_IF_ERROR(epoch->done_splits.Read(state.done_splits()));
  uint64_t rows = 0;  // records of the splits that are not whole
  for (const SplitLedger& saved : state.splits()) {
    const bool ascends = epoch->splits.empty() || saved.split() > epoch->splits.rbegin()->first;
    if (!ascends || epoch->done_splits.Holds(saved.split())) {
      return absl::DataLossError("has splits twice or out of order");
    }
    absl::StatusOr<ConsumedSplit> split = ConsumedSplit::FromState(saved);
    if (!split.ok()) {
      return absl::DataLossError(
          absl::StrCat("split ", saved.split(), " ", split.status().message()));
    }
    epoch->splits.emplace(saved.split(), *std::move(split));
    rows += saved.rows();
  }
  // Whole splits have no entry, so the total can be checked exactly only if there are no such
  // splits.
  const bool sums_up = epoch->done_splits.empty() && !epoch->is_closed() ? rows == state.rows()
                                                                         : rows <= state.rows();
  return sums_up ? absl::OkStatus()
                 : absl::DataLossError(
                       "has a number of records that does not match the sum of its splits");
}

absl::StatusOr<Ledger> Ledger::FromState(const LedgerState& state) {
  Ledger ledger;
  for (const EpochLedger& from : state.epochs()) {
    const bool ascends = ledger.epochs_.empty() || from.epoch() > ledger.epochs_.rbegin()->first;
    const absl::Status read = ascends ? ReadEpoch(from, &ledger.epochs_[from.epoch()])
                                      : absl::DataLossError("is out of order");
    if (!read.ok()) {
      return absl::DataLossError(
          absl::StrCat("the ledger contradicts itself: epoch ", from.epoch(), " ", read.message()));
    }
  }
  return ledger;
}

}  // namespace satrap
