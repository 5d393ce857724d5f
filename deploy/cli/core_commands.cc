#include <csignal>
#include <cstdio>

#include "absl/types/optional.h"
#include "deploy/cli/command_line.h"
#include "deploy/cli/commands.h"

namespace satrap {

void IgnoreSignalsOfWrites() {
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
}

int HelpCommand(const CommandLine& line) {
  printf("%s", HelpText(line.command_name).c_str());
  return 0;
}

absl::optional<int> RunCoreCommand(const CommandLine& line) {
  switch (line.command) {
    case Command::kHelp:
      // The tools explain those themselves.
      if (line.command_name == "produce" || line.command_name == "topics") return absl::nullopt;
      return HelpCommand(line);
    case Command::kDemo:
      if (line.kafka) return absl::nullopt;
      return TrainCommand(line);
    case Command::kTrain:
      return TrainCommand(line);
    case Command::kValidate:
      return ValidateCommand(line);
    case Command::kEvaluate:
      return EvaluateCommand(line);
    case Command::kPredict:
      return PredictCommand(line);
    case Command::kStatus:
      return StatusCommand(line);
    case Command::kResume:
      return ResumeCommand(line);
    case Command::kStop:
      return StopCommand(line);
    case Command::kScale:
      return ScaleCommand(line);
    case Command::kCheckpoint:
      return CheckpointCommand(line);
    case Command::kCheckpointList:
      return ListCutsCommand(line);
    case Command::kCheckpointInspect:
      return InspectCutCommand(line);
    case Command::kCheckpointVerify:
      return VerifyCutCommand(line);
    case Command::kModels:
      return ModelsCommand(line);
    case Command::kModel:
      return ModelCommand(line);
    case Command::kRetrieve:
    case Command::kChaos:
    case Command::kBench:
    case Command::kProduce:
    case Command::kTopics:
      return absl::nullopt;
  }
  return 1;
}

}  // namespace satrap
