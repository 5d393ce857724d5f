#include "common/base/cpu_name.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace satrap {

std::string CpuNameOf(absl::string_view cpuinfo) {
  std::string name, family, model, stepping;
  int cpus = 0;
  for (const absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(field.first);
    const absl::string_view value = absl::StripAsciiWhitespace(field.second);
    // /proc/cpuinfo has a section for each CPU. All CPUs are assumed to be alike.
    if (key == "processor") ++cpus;
    if (key == "model name") name = std::string(value);
    if (key == "cpu family") family = std::string(value);
    if (key == "model") model = std::string(value);
    if (key == "stepping") stepping = std::string(value);
  }
  if (name.empty()) return "unknown";
  const std::string version = family.empty() ? ""
                                             : absl::StrCat(" (family ", family, ", model ", model,
                                                            ", stepping ", stepping, ")");
  const std::string text = absl::StrCat(name, version, ", ", cpus, cpus == 1 ? " CPU" : " CPUs");
  return absl::StrReplaceAll(text, {{"\"", "'"}, {"\\", "/"}});
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  std::stringstream text;
  text << file.rdbuf();
  return CpuNameOf(text.str());
}

}  // namespace satrap
