#include "deploy/pod/memory_kills.h"

#include <fstream>
#include <sstream>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace satrap {
namespace {

// In v1, a limit that is not set reads as the largest number of pages.
constexpr int64_t kNoLimitBytes = int64_t{1} << 60;

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool HasMemory(const std::string& controllers) {
  const std::vector<std::string> names = absl::StrSplit(controllers, ',');
  return absl::c_linear_search(names, "memory");
}

// A line of mountinfo: ID PARENT DEVICE ROOT POINT OPTIONS FIELD... - TYPE SOURCE OPTIONS
struct Mount {
  std::string root;
  std::string point;
};
absl::optional<Mount> MountOf(const std::vector<std::string>& lines, bool is_v2) {
  for (const std::string& line : lines) {
    const std::vector<std::string> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (halves.size() != 2) continue;
    const std::vector<std::string> of_mount = absl::StrSplit(halves[0], ' ');
    const std::vector<std::string> of_type = absl::StrSplit(halves[1], ' ');
    if (of_mount.size() < 5 || of_type.size() < 3) continue;
    if (is_v2 ? of_type[0] != "cgroup2" : of_type[0] != "cgroup" || !HasMemory(of_type[2]))
      continue;
    return Mount{of_mount[3], of_mount[4]};
  }
  return absl::nullopt;
}

// A line of cgroup: ID:CONTROLLERS:PATH; v2 has the id 0 and no controllers.
absl::optional<std::string> PathOf(const std::vector<std::string>& lines, bool is_v2) {
  for (const std::string& line : lines) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (is_v2 ? fields[0] == "0" && fields[1].empty() : HasMemory(fields[1])) return fields[2];
  }
  return absl::nullopt;
}

// The folder of the process's cgroup, as this process sees it. A container mostly sees only its own
// cgroup; then that cgroup is the mount's root.
std::string FolderOf(const Mount& mount, const std::string& path) {
  if (mount.root == "/") return path == "/" ? mount.point : mount.point + path;
  if (absl::StartsWith(path, mount.root + "/")) return mount.point + path.substr(mount.root.size());
  return mount.point;
}

}  // namespace

MemoryKills::MemoryKills(const std::string& proc_folder) {
  const std::vector<std::string> mounts = LinesOf(proc_folder + "/mountinfo");
  const std::vector<std::string> cgroups = LinesOf(proc_folder + "/cgroup");
  // If a machine has both versions, the memory controller is in v1.
  for (const bool is_v2 : {false, true}) {
    const absl::optional<Mount> mount = MountOf(mounts, is_v2);
    const absl::optional<std::string> path = PathOf(cgroups, is_v2);
    if (!mount.has_value() || !path.has_value()) continue;
    const std::string folder = FolderOf(*mount, *path);
    count_path_ = folder + (is_v2 ? "/memory.events" : "/memory.oom_control");
    limit_path_ = folder + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes");
    return;
  }
}

int64_t MemoryKills::Count() const {
  for (const std::string& line : LinesOf(count_path_)) {
    int64_t count = 0;
    if (absl::StartsWith(line, "oom_kill ") && absl::SimpleAtoi(line.substr(9), &count)) {
      return count;
    }
  }
  return 0;
}

absl::optional<int64_t> MemoryKills::LimitBytes() const {
  const std::vector<std::string> lines = LinesOf(limit_path_);
  int64_t bytes = 0;
  // v2 says "max" if there is no limit.
  if (lines.empty() || !absl::SimpleAtoi(lines[0], &bytes) || bytes >= kNoLimitBytes) {
    return absl::nullopt;
  }
  return bytes;
}

}  // namespace satrap
