// The whole command line: the commands of deploy/satrap_cli, and its tools.

#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/base/check.h"
#include "deploy/cli/command_line.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/kafka/commands.h"

namespace satrap {
namespace {

int RunProduceCommand(const CommandCall& call) {
  std::vector<std::string> args = call.args;
  args.push_back("--install_dir=" + call.install_dir);
  return ProduceCommand(args);
}

int RunTool(const CommandCall& call) {
  constexpr std::pair<absl::string_view, int (*)(const CommandCall&)> kTools[] = {
      {"demo", KafkaDemoCommand}, {"retrieve", RetrieveCommand},  {"chaos", ChaosCommand},
      {"bench", BenchCommand},    {"produce", RunProduceCommand}, {"topics", RunTopicsCommand},
  };
  if (call.name == "help") {
    return call.args[0] == "produce" ? ProduceCommand({"--help"}) : TopicsCommand({"--help"});
  }
  for (const auto& [name, run] : kTools) {
    if (call.name == name) return run(call);
  }
  CHECK(false) << "RunCoreCommand has " << call.name;
  return 1;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  satrap::IgnoreSignalsOfWrites();
  const auto call = satrap::ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc));
  if (!call.ok()) return satrap::PrintError(call.status());
  const absl::optional<int> code = satrap::RunCoreCommand(*call);
  return code.has_value() ? *code : satrap::RunTool(*call);
}
