#include "deploy/cli/tools_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"
#include "deploy/cli/programs_dir.h"

namespace satrap {

absl::Status BecomeToolsProgram() {
  ASSIGN_OR_RETURN(const std::string folder, ProgramsDir());
  const std::string program = absl::StrCat(folder, "/deploy/satrap_tools");
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // Each argument ends with a zero byte.
  std::vector<std::string> args = absl::StrSplit(line, '\0');
  args.pop_back();
  if (args.empty()) return absl::InternalError("/proc/self/cmdline is empty");
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  fflush(nullptr);
  execv(program.c_str(), argv.data());
  if (errno == ENOENT) {
    return absl::NotFoundError(absl::StrCat("this command needs ", program,
                                            ", which is not there; build //deploy:satrap_tools"));
  }
  return FileError("cannot run", program);
}

}  // namespace satrap
