// The command line without its tools: the script ./satrap builds what is missing and then runs this
// program, which starts deploy/satrap_tools for the commands that it lacks.

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "deploy/cli/command_line.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/tools_program.h"

int main(int argc, char** argv) {
  satrap::IgnoreSignalsOfWrites();
  const auto line = satrap::ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc));
  if (!line.ok()) return satrap::PrintError(line.status());
  const absl::optional<int> code = satrap::RunCoreCommand(*line);
  return code.has_value() ? *code : satrap::PrintError(satrap::BecomeToolsProgram());
}
