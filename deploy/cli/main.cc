// The command line: the script ./satrap builds what is missing and then runs this program.

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "deploy/cli/command_line.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/kafka/commands.h"

namespace satrap {
namespace {

int Main(const std::vector<std::string>& args) {
  const auto line = ParseCommandLine(args);
  if (!line.ok()) return PrintError(line.status());
  switch (line->command) {
    case Command::kHelp:
      if (line->command_name == "produce") return ProduceCommand({"--help"});
      if (line->command_name == "topics") return TopicsCommand({"--help"});
      printf("%s", HelpText(line->command_name).c_str());
      return 0;
    case Command::kDemo:
      return line->kafka ? KafkaDemoCommand(*line) : TrainCommand(*line);
    case Command::kTrain:
      return TrainCommand(*line);
    case Command::kValidate:
      return ValidateCommand(*line);
    case Command::kEvaluate:
      return EvaluateCommand(*line);
    case Command::kPredict:
      return PredictCommand(*line);
    case Command::kRetrieve:
      return RetrieveCommand(*line);
    case Command::kStatus:
      return StatusCommand(*line);
    case Command::kResume:
      return ResumeCommand(*line);
    case Command::kStop:
      return StopCommand(*line);
    case Command::kScale:
      return ScaleCommand(*line);
    case Command::kCheckpoint:
      return CheckpointCommand(*line);
    case Command::kCheckpointList:
      return ListCutsCommand(*line);
    case Command::kCheckpointInspect:
      return InspectCutCommand(*line);
    case Command::kCheckpointVerify:
      return VerifyCutCommand(*line);
    case Command::kChaos:
      return ChaosCommand(*line);
    case Command::kBench:
      return BenchCommand(*line);
    case Command::kProduce: {
      std::vector<std::string> produce = line->arguments;
      produce.push_back("--install_dir=" + line->install_dir);
      return ProduceCommand(produce);
    }
    case Command::kTopics:
      return RunTopicsCommand(*line);
    case Command::kModels:
      return ModelsCommand(*line);
    case Command::kModel:
      return ModelCommand(*line);
  }
  return 1;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  // A file at its size limit is an error of the write, which is told.
  signal(SIGXFSZ, SIG_IGN);
  return satrap::Main(std::vector<std::string>(argv + 1, argv + argc));
}
