// The command line without its tools. The script ./satrap builds what is missing and then runs this
// program. For commands that this program lacks, it starts deploy/satrap_tools.

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "deploy/cli/command_line.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/tools_program.h"

int main(int argc, char** argv) {
  satrap::IgnoreSignalsOfWrites();
  const auto call = satrap::ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc));
  if (!call.ok()) return satrap::PrintError(call.status());
  const absl::optional<int> code = satrap::RunCoreCommand(*call);
  if (code.has_value()) return *code;
  const absl::Status status = satrap::CheckArguments(*call);
  return satrap::PrintError(status.ok() ? satrap::BecomeToolsProgram() : status);
}
