#include <csignal>
#include <cstdio>
#include <utility>

#include "absl/types/optional.h"
#include "deploy/cli/command_line.h"
#include "deploy/cli/commands.h"

namespace satrap {

void IgnoreSignalsOfWrites() {
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
}

absl::optional<int> RunCoreCommand(const CommandCall& call) {
  constexpr std::pair<absl::string_view, int (*)(const CommandCall&)> kCommands[] = {
      {"train", TrainCommand},     {"validate", ValidateCommand}, {"evaluate", EvaluateCommand},
      {"predict", PredictCommand}, {"status", StatusCommand},     {"resume", ResumeCommand},
      {"stop", StopCommand},       {"scale", ScaleCommand},       {"checkpoint", CheckpointCommand},
      {"models", ModelsCommand},   {"model", ModelCommand},       {"submit", SubmitCommand},
      {"list", ListCommand},       {"logs", LogsCommand},         {"delete", DeleteCommand},
      {"story", StoryCommand},     {"members", MembersCommand},
  };
  for (const auto& [name, run] : kCommands) {
    if (call.name == name) return run(call);
  }
  if (call.name == "demo") return DemoCommand(call);
  if (call.name != "help") return absl::nullopt;
  const std::string about = call.args.empty() ? "" : call.args[0];
  // The program deploy/satrap_tools prints the help of these two.
  if (about == "produce" || about == "topics") return absl::nullopt;
  printf("%s", HelpText(about).c_str());
  return 0;
}

}  // namespace satrap
