#include "common/config/job_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/near_match.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr char kJobSuffix[] = ".textproto";

std::vector<std::string> InstalledJobs(const std::string& jobs_dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(jobs_dir, error)) {
    const fs::path& path = entry.path();
    if (path.extension() == kJobSuffix) names.push_back(path.stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::StatusOr<std::string> FindJobFile(const std::string& job, const std::string& install_dir) {
  std::error_code error;
  if (fs::is_regular_file(job, error)) return job;
  const std::string jobs_dir = install_dir + "/deploy/jobs";
  for (const std::string& path :
       {absl::StrCat(jobs_dir, "/", job), absl::StrCat(jobs_dir, "/", job, kJobSuffix)}) {
    if (fs::is_regular_file(path, error)) return path;
  }
  const std::vector<std::string> names = InstalledJobs(jobs_dir);
  return absl::NotFoundError(
      absl::StrCat("no job '", job, "': there is no such file, and no such job in ", jobs_dir, " (",
                   absl::StrJoin(names, ", "), ")", DidYouMean(job, names)));
}

}  // namespace satrap
