#include "deploy/cli/programs_dir.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace satrap {

absl::StatusOr<std::string> ProgramsDir() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError(absl::StrCat("/proc/self/exe: ", error.message()));
  // This program is DIR/deploy/satrap_cli.
  return self.parent_path().parent_path().string();
}

}  // namespace satrap
