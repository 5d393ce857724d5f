#include "common/checkpoint/cut_name.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace satrap {

std::string CutName(uint64_t generation, uint64_t cut) {
  return absl::StrFormat("cut_%04d_%06d", generation, cut);
}

absl::optional<CutId> ParseCutName(absl::string_view name) {
  const std::vector<absl::string_view> words = absl::StrSplit(name, '_');
  CutId id;
  if (words.size() != 3 || !absl::SimpleAtoi(words[1], &id.generation) ||
      !absl::SimpleAtoi(words[2], &id.number)) {
    return absl::nullopt;
  }
  // Another spelling of the same numbers would name another folder.
  if (CutName(id.generation, id.number) != name) return absl::nullopt;
  return id;
}

std::string CheckpointsDir(const std::string& run_dir) { return run_dir + "/checkpoints"; }

std::string FolderOfCut(const std::string& run_dir, const std::string& cut) {
  if (cut.empty()) return "";
  return absl::StrCat(CheckpointsDir(run_dir), "/", cut);
}

}  // namespace satrap
