// The command line of ./satrap, parsed and checked.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_CLI_COMMAND_LINE_H_
#define SATRAP_DEPLOY_CLI_COMMAND_LINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace satrap {

enum class Command {
  kHelp,
  kDemo,
  kTrain,
  kValidate,
  kEvaluate,
  kPredict,
  kRetrieve,
  kStatus,
  kResume,
  kStop,
  kScale,
  kCheckpoint,
  kCheckpointList,
  kCheckpointInspect,
  kCheckpointVerify,
  kChaos,
  kBench,
  kProduce,
  kTopics,
  kModels,
  kModel
};

struct CommandLine {
  Command command = Command::kHelp;
  std::string command_name;              // "train"; for kHelp the command to explain
  std::vector<std::string> arguments;    // JOB; RUN FILE; NAME; RUN FIELD=N...; CUT;
                                         // produce, topics: all of them, flags too
  std::string install_dir = ".";         // --install_dir: the folder of deploy/jobs and the zoo
  std::vector<std::string> sets;         // --set path=value, in order
  std::string report;                    // --report FILE
  std::string run_dir;                   // --run_dir DIR
  std::string init_from;                 // --init_from RUN
  std::vector<std::string> outputs;      // --output LAYER (predict), in order
  std::string output_file;               // --output_file FILE (predict, retrieve)
  std::string users;                     // --users FILE (retrieve), likewise
  std::string items;                     // --items FILE
  std::string relevant;                  // --relevant FILE
  std::string seen;                      // --seen FILE; empty: nothing was seen
  std::string popularity;                // --popularity FILE; empty: no baseline
  std::vector<int> ks = {20, 50};        // --k N,N,...
  bool json = false;                     // --json
  std::string from_cut;                  // --from CUT (resume)
  int kills = 20;                        // --kills N (chaos)
  uint64_t seed = 1;                     // --seed S (chaos)
  double every_seconds = 0;              // --every_seconds N (chaos); 0: by progress
  int undisturbed = 0;                   // --undisturbed N (chaos)
  std::vector<std::string> bench_flags;  // bench: all other flags, as typed
  bool kafka = false;                    // --kafka (demo)
  double rate = 20000;                   // --rate N (demo --kafka)
  double minutes = 0;                    // --minutes N (demo --kafka); 0: until all is trained
  int64_t rows = 0;                      // --rows N (model); 0: tables are not counted
  int64_t features = -1;                 // --features N (model); -1: as ExampleData has it
  int64_t numerics = -1;                 // --numerics N (model); -1 likewise
  int64_t dim = -1;                      // --dim N (model); -1 likewise
  std::string dot;                       // --dot FILE (model)
};

// `args` does not include the program's name. INVALID_ARGUMENT says in one line what is wrong and
// what was probably meant.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& args);

// The help text of one command, or the list of commands if there is none of that name.
std::string HelpText(absl::string_view command_name);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_COMMAND_LINE_H_
