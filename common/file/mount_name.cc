#include "common/file/mount_name.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace satrap {

std::string MountNameIn(absl::string_view mountinfo, absl::string_view path) {
  std::string name;
  size_t longest = 0;
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    // "36 35 98:0 / /mnt/runs rw,noatime master:1 - ext4 /dev/sda1 rw": before the hyphen there may
    // be any number of optional fields.
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    const auto hyphen = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - hyphen < 2) continue;
    const std::string place = absl::StrReplaceAll(
        words[4], {{"\\040", " "}, {"\\011", "\t"}, {"\\012", "\n"}, {"\\134", "\\"}});
    const bool holds = place == "/" || path == place || absl::StartsWith(path, place + "/");
    // If two mounts have the same place, the later one hides the earlier one.
    if (!holds || place.size() < longest) continue;
    longest = place.size();
    name = std::string(hyphen[1]);
  }
  return name;
}

std::string MountNameOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  if (error) return "";
  std::ifstream file("/proc/self/mountinfo");
  std::stringstream text;
  text << file.rdbuf();
  return MountNameIn(text.str(), real.string());
}

}  // namespace satrap
