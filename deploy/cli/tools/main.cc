// The whole command line: what deploy/satrap_cli has, and its tools.

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/base/check.h"
#include "deploy/cli/command_line.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/kafka/commands.h"

namespace satrap {
namespace {

int RunTool(const CommandLine& line) {
  switch (line.command) {
    case Command::kHelp:
      return line.command_name == "produce" ? ProduceCommand({"--help"})
                                            : TopicsCommand({"--help"});
    case Command::kDemo:
      return KafkaDemoCommand(line);
    case Command::kRetrieve:
      return RetrieveCommand(line);
    case Command::kChaos:
      return ChaosCommand(line);
    case Command::kBench:
      return BenchCommand(line);
    case Command::kProduce: {
      std::vector<std::string> produce = line.arguments;
      produce.push_back("--install_dir=" + line.install_dir);
      return ProduceCommand(produce);
    }
    case Command::kTopics:
      return RunTopicsCommand(line);
    default:
      break;
  }
  CHECK(false) << "RunCoreCommand has " << line.command_name;
  return 1;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  satrap::IgnoreSignalsOfWrites();
  const auto line = satrap::ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc));
  if (!line.ok()) return satrap::PrintError(line.status());
  const absl::optional<int> code = satrap::RunCoreCommand(*line);
  return code.has_value() ? *code : satrap::RunTool(*line);
}
