#include "common/refusal/refusal.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/role/ending.h"

namespace satrap {
namespace {

std::string PathOf(const std::string& run_dir, uint64_t submission) {
  return absl::StrCat(run_dir, "/refused_", submission, ".textproto");
}

// Distinguishes the file from one that replaces it later; "" if there is none.
std::string MarkOf(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return "";
  return absl::StrCat(found.st_ino, " ", found.st_mtim.tv_sec, " ", found.st_mtim.tv_nsec);
}

}  // namespace

void LeaveRefusal(const std::string& run_dir, uint64_t submission, const Ending& ending) {
  LeaveEnding(PathOf(run_dir, submission), ending);
}

void RemoveRefusal(const std::string& run_dir, uint64_t submission) {
  std::error_code error;
  std::filesystem::remove(PathOf(run_dir, submission), error);
}

bool IsRefusal(const StatusAnswer& status, uint64_t submission) {
  // A coordinator whose generation is 0 has not claimed a generation.
  return status.state() == FAILED && status.generation() == 0 && status.submission() == submission;
}

absl::optional<Ending> RefusalOf(const std::string& run_dir, uint64_t submission) {
  return ReadEnding(PathOf(run_dir, submission));
}

RefusalWatch::RefusalWatch(std::string run_dir, uint64_t submission)
    : run_dir_(std::move(run_dir)),
      submission_(submission),
      before_(MarkOf(PathOf(run_dir_, submission))) {}

absl::optional<Ending> RefusalWatch::New() const {
  if (MarkOf(PathOf(run_dir_, submission_)) == before_) return absl::nullopt;
  return RefusalOf(run_dir_, submission_);
}

}  // namespace satrap
