// The command line: the script ./satrap builds what is missing and then runs this program.

#include <cstdio>
#include <string>
#include <vector>

#include "deploy/cli/command_line.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"

namespace satrap {
namespace {

int Main(const std::vector<std::string>& args) {
  const auto line = ParseCommandLine(args);
  if (!line.ok()) return PrintError(line.status());
  switch (line->command) {
    case Command::kHelp:
      printf("%s", HelpText(line->command_name).c_str());
      return 0;
    case Command::kDemo:
    case Command::kTrain:
      return TrainCommand(*line);
    case Command::kValidate:
      return ValidateCommand(*line);
    case Command::kEvaluate:
      return EvaluateCommand(*line);
    case Command::kPredict:
      return PredictCommand(*line);
    case Command::kStatus:
      return StatusCommand(*line);
    case Command::kBench:
      return BenchCommand(*line);
  }
  return 1;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  return satrap::Main(std::vector<std::string>(argv + 1, argv + argc));
}
