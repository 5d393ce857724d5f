// The names of a run's cuts, and the folders that hold them.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_CUT_NAME_H_
#define SATRAP_COMMON_CHECKPOINT_CUT_NAME_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace satrap {

// Cut `number` of a generation; both are counted from 1. CutIds compare in the order in which cuts
// are committed.
struct CutId {
  uint64_t generation = 0;
  uint64_t number = 0;
  auto operator<=>(const CutId&) const = default;
};
// "cut_0003_000012"
std::string CutName(uint64_t generation, uint64_t cut);
// Nullopt if `name` is not one that CutName can return.
absl::optional<CutId> ParseCutName(absl::string_view name);
// RUN/checkpoints
std::string CheckpointsDir(const std::string& run_dir);
// RUN/checkpoints/NAME; empty for the cut "", which means the beginning of the run.
std::string FolderOfCut(const std::string& run_dir, const std::string& cut);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_CUT_NAME_H_
