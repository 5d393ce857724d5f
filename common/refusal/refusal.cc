#include "common/refusal/refusal.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/role/ending.h"

namespace satrap {
namespace {

std::string PathOf(const std::string& run_dir, uint64_t submission) {
  return absl::StrCat(run_dir, "/refused_", submission, ".textproto");
}

}  // namespace

void LeaveRefusal(const std::string& run_dir, uint64_t submission, const Ending& ending) {
  LeaveEnding(PathOf(run_dir, submission), ending);
}

void RemoveRefusal(const std::string& run_dir, uint64_t submission) {
  std::error_code error;
  std::filesystem::remove(PathOf(run_dir, submission), error);
}

absl::optional<Ending> RefusalOf(const std::string& run_dir, uint64_t submission) {
  return ReadEnding(PathOf(run_dir, submission));
}

}  // namespace satrap
