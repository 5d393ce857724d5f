#include "tests/simulation/sim_ledger.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/simulation/data/sim_formats.h"

namespace satrap::simulation {
namespace {

// Reads the ledger of one epoch.
class EpochReader {
 public:
  EpochReader(const WorldShape& shape, const EpochLedger& epoch,
              const std::function<void(std::string)>& violated)
      : shape_(shape), epoch_(epoch), violated_(violated) {}

  std::set<uint64_t> Read() {
    for (int i = 0; i + 1 < epoch_.done_splits_size(); i += 2) {
      for (uint32_t split = epoch_.done_splits(i); split <= epoch_.done_splits(i + 1); ++split) {
        if (IsSplit(split)) AddPositions(split, 0, Rows(split));
      }
    }
    for (const SplitLedger& split : epoch_.splits()) {
      if (IsSplit(split.split())) ReadSplit(split);
    }
    if (!ids_.empty() && ids_.size() != epoch_.rows()) {
      Violate(absl::StrCat("names ", ids_.size(), " records and counts ", epoch_.rows()));
    }
    return std::move(ids_);
  }

 private:
  void Violate(const std::string& what) {
    violated_(absl::StrCat("the ledger of epoch ", epoch_.epoch(), " ", what));
  }
  uint64_t Rows(uint32_t split) const { return shape_.split_rows[TRAIN_STREAM][split]; }
  uint64_t BlockRows() const {
    return shape_.shuffle_rows > 0 ? shape_.shuffle_rows : formats::kRowsOfUnshuffledBlock;
  }
  bool IsSplit(uint32_t split) {
    if (split < shape_.split_rows[TRAIN_STREAM].size()) return true;
    Violate(absl::StrCat("has split ", split, ", which does not exist"));
    return false;
  }

  void ReadSplit(const SplitLedger& split) {
    const size_t before = ids_.size();
    if (split.has_split_rows() && split.split_rows() != Rows(split.split())) {
      Violate(absl::StrCat("gives split ", split.split(), " ", split.split_rows(), " records"));
    }
    for (int i = 0; i + 1 < split.done_blocks_size(); i += 2) {
      for (uint64_t block = split.done_blocks(i); block <= split.done_blocks(i + 1); ++block) {
        const uint64_t from = block * BlockRows();
        AddPositions(split.split(), from, std::min(from + BlockRows(), Rows(split.split())));
      }
    }
    for (const BlockLedger& block : split.blocks()) {
      const uint64_t first = block.block() * BlockRows();
      for (int i = 0; i + 1 < block.from_to_size(); i += 2) {
        AddPositions(split.split(), first + block.from_to(i), first + block.from_to(i + 1));
      }
    }
    if (ids_.size() - before != split.rows()) {
      Violate(absl::StrCat("names ", ids_.size() - before, " records of split ", split.split(),
                           " and counts ", split.rows()));
    }
  }

  // Adds positions [from, to) of the split, in the epoch's order.
  void AddPositions(uint32_t split, uint64_t from, uint64_t to) {
    const std::vector<int> order =
        RowOrder(shape_, TRAIN_STREAM, static_cast<int>(split), epoch_.epoch());
    for (uint64_t at = from; at < to; ++at) {
      if (at >= order.size()) {
        Violate(absl::StrCat("has record ", at, " of split ", split, ", which does not exist"));
        return;
      }
      const uint64_t id = MakeSample(shape_, TRAIN_STREAM, static_cast<int>(split), order[at]).id;
      if (!ids_.insert(id).second) Violate(absl::StrCat("has sample ", id, " twice"));
    }
  }

  const WorldShape& shape_;
  const EpochLedger& epoch_;
  const std::function<void(std::string)>& violated_;
  std::set<uint64_t> ids_;
};

}  // namespace

std::set<uint64_t> SamplesOfLedger(const WorldShape& shape, const EpochLedger& epoch,
                                   const std::function<void(std::string)>& violated) {
  return EpochReader(shape, epoch, violated).Read();
}

void CheckLedger(const WorldShape& shape, const LedgerState& ledger, const SimTraining::Seen& seen,
                 const std::function<void(std::string)>& violated) {
  std::map<uint32_t, std::set<uint64_t>> expected;
  for (const auto& [pass, samples] : seen) {
    if (pass.first != TRAIN_STREAM) continue;
    for (const auto& [id, times] : samples) {
      if (times != 1) {
        violated(absl::StrCat("sample ", id, " came ", times, " times in epoch ", pass.second));
      }
      expected[pass.second].insert(id);
    }
  }
  for (const EpochLedger& epoch : ledger.epochs()) {
    const std::set<uint64_t> held = SamplesOfLedger(shape, epoch, violated);
    const std::set<uint64_t> used = std::move(expected[epoch.epoch()]);
    expected.erase(epoch.epoch());
    if (epoch.rows() != used.size()) {
      violated(absl::StrCat("the ledger counts ", epoch.rows(), " samples in epoch ", epoch.epoch(),
                            ", and ", used.size(), " were used"));
    }
    // For an epoch that is over, only the totals may be left.
    const bool only_totals = epoch.splits().empty() && epoch.done_splits().empty();
    if (!only_totals && held != used) {
      violated(absl::StrCat("the ledger of epoch ", epoch.epoch(),
                            " holds other samples than were used"));
    }
  }
  for (const auto& [epoch, used] : expected) {
    if (used.empty()) continue;
    violated(absl::StrCat("the ledger misses all ", used.size(), " samples of epoch ", epoch));
  }
}

}  // namespace satrap::simulation
