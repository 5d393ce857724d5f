#include "deploy/cli/command_line.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"

namespace satrap {
namespace {

struct CommandInfo {
  const char* name;
  Command command;
  size_t min_arguments;
  size_t max_arguments;
  const char* arguments;
  const char* flags;  // separated by blanks
  const char* help;
};

constexpr CommandInfo kCommands[] = {
    {"demo", Command::kDemo, 0, 0, "", "set report run_dir",
     "Makes a million samples of a synthetic click log, trains DeepFM on them by all services and\n"
     "reports. The same as `train demo`."},
    {"train", Command::kTrain, 1, 1, "JOB", "set report run_dir init_from",
     "Trains the job of a file, or of deploy/jobs/JOB.textproto, on this machine: every role as a\n"
     "process of its own. --init_from starts from the model of an earlier run."},
    {"validate", Command::kValidate, 1, 1, "JOB", "set",
     "Checks a job, with its overrides and its data files, and prints it with all defaults."},
    {"evaluate", Command::kEvaluate, 1, 1, "RUN", "set report run_dir",
     "Scores the model of a run on its test data; --set data.test_files=... takes other data."},
    {"predict", Command::kPredict, 2, 2, "RUN FILE", "set report run_dir output",
     "Scores FILE, which has the format of the run's data, with the model of the run: one\n"
     "probability a line, in the order of the records, to the standard output or to --output."},
    {"status", Command::kStatus, 0, 1, "[RUN]", "",
     "Says what a run is doing, or how it ended. By default the newest training under ./runs."},
    {"bench", Command::kBench, 1, 1, "NAME", "*",
     "Runs a benchmark and prints one JSON line. NAME is table, rpc, parse, graph, plan or "
     "deepfm;\n"
     "the flags of deepfm are --seconds N, --warmup_seconds N, --wire f32|f16|bf16, --mlp "
     "400,400,400,\n"
     "--from_file FILE (Criteo TSV), and --set."},
    {"help", Command::kHelp, 0, 1, "[COMMAND]", "", "Explains a command."},
};

constexpr std::pair<const char*, const char*> kFlagHelp[] = {
    {"set",
     "--set path=value     override a field of the job: --set embedding_ps.replicas=4\n"
     "                     (again for another field)"},
    {"report", "--report FILE        write the report there too, as JSON"},
    {"run_dir", "--run_dir DIR        folder of the run (default: runs/NAME-DATE-TIME)"},
    {"init_from", "--init_from RUN      start from the model of that run, or of that model folder"},
    {"output", "--output FILE        write the probabilities there"},
};

const CommandInfo* FindCommand(absl::string_view name) {
  for (const CommandInfo& info : kCommands) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

bool TakesFlag(const CommandInfo& info, absl::string_view flag) {
  return absl::StrContains(absl::StrCat(" ", info.flags, " "), absl::StrCat(" ", flag, " "));
}

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string DidYouMean(absl::string_view typed, const std::vector<std::string>& candidates,
                       absl::string_view prefix = "") {
  const std::string near = NearMatch(typed, candidates);
  if (near.empty()) return "";
  return absl::StrCat("; did you mean ", prefix, near, "?");
}

absl::StatusOr<const CommandInfo*> CommandOf(const std::string& name) {
  const CommandInfo* info = FindCommand(name);
  if (info != nullptr) return info;
  std::vector<std::string> names = {"test"};
  for (const CommandInfo& each : kCommands) names.push_back(each.name);
  return absl::InvalidArgumentError(absl::StrCat("there is no command '", name, "'",
                                                 DidYouMean(name, names), " Commands are ",
                                                 absl::StrJoin(names, ", ")));
}

// Takes the value of the flag at args[*i], which may be in the next argument.
absl::StatusOr<std::string> TakeValue(const std::vector<std::string>& args, size_t* i) {
  const size_t equals = args[*i].find('=');
  if (equals != std::string::npos) return args[*i].substr(equals + 1);
  if (*i + 1 >= args.size()) {
    return absl::InvalidArgumentError(absl::StrCat(args[*i], " needs a value"));
  }
  return args[++*i];
}

absl::Status TakeFlag(const CommandInfo& info, const std::vector<std::string>& args, size_t* i,
                      CommandLine* line) {
  const std::string typed = args[*i];
  const std::string name = typed.substr(2, typed.find('=') - 2);
  if (info.command == Command::kBench && name != "set") {
    line->bench_flags.push_back(typed);
    if (!absl::StrContains(typed, "=") && *i + 1 < args.size() &&
        !absl::StartsWith(args[*i + 1], "--")) {
      line->bench_flags.back() += absl::StrCat("=", args[++*i]);
    }
    return absl::OkStatus();
  }
  if (!TakesFlag(info, name) && info.command != Command::kBench) {
    std::vector<std::string> known;
    for (const auto& [flag, help] : kFlagHelp) {
      if (TakesFlag(info, flag)) known.push_back(flag);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("'", info.name, "' has no flag --", name, DidYouMean(name, known, "--")));
  }
  ASSIGN_OR_RETURN(const std::string value, TakeValue(args, i));
  if (name == "set") line->sets.push_back(value);
  if (name == "report") line->report = value;
  if (name == "run_dir") line->run_dir = value;
  if (name == "init_from") line->init_from = value;
  if (name == "output") line->output = value;
  return absl::OkStatus();
}

}  // namespace

std::string NearMatch(absl::string_view typed, const std::vector<std::string>& candidates) {
  std::string best;
  int best_distance = typed.size() > 7 ? 4 : 3;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(typed, candidate);
    // Two short words with nothing in common are no match.
    if (distance >= static_cast<int>(candidate.size())) continue;
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& args) {
  CommandLine line;
  size_t i = 0;
  if (i < args.size() && absl::StartsWith(args[i], "--install_dir=")) {
    line.install_dir = args[i++].substr(std::string("--install_dir=").size());
  }
  if (i == args.size()) return line;
  ASSIGN_OR_RETURN(const CommandInfo* info, CommandOf(args[i++]));
  line.command = info->command;
  line.command_name = info->name;
  for (; i < args.size(); ++i) {
    if (args[i] == "--help" || args[i] == "-h") {
      line.command = Command::kHelp;
      return line;
    }
    if (absl::StartsWith(args[i], "--")) {
      RETURN_IF_ERROR(TakeFlag(*info, args, &i, &line));
    } else {
      line.arguments.push_back(args[i]);
    }
  }
  if (line.arguments.size() < info->min_arguments || line.arguments.size() > info->max_arguments) {
    return absl::InvalidArgumentError(absl::StrCat(
        "usage: satrap ", info->name, *info->arguments == 0 ? "" : " ", info->arguments));
  }
  if (line.command == Command::kHelp) {
    line.command_name = line.arguments.empty() ? "" : line.arguments[0];
  }
  return line;
}

std::string HelpText(absl::string_view command_name) {
  const CommandInfo* info = FindCommand(command_name);
  if (info == nullptr || info->command == Command::kHelp) {
    std::string text = "usage: satrap COMMAND [ARGUMENTS] [FLAGS]\n\n";
    for (const CommandInfo& each : kCommands) {
      absl::StrAppendFormat(&text, "  %s\n", absl::StrCat(each.name, " ", each.arguments));
    }
    absl::StrAppend(&text, "\n`satrap COMMAND --help` explains one.\n");
    return text;
  }
  std::string text =
      absl::StrCat("usage: satrap ", info->name, " ", info->arguments, "\n\n", info->help, "\n");
  bool first = true;
  for (const auto& [flag, help] : kFlagHelp) {
    if (!TakesFlag(*info, flag)) continue;
    absl::StrAppend(&text, first ? "\n" : "", "  ", help, "\n");
    first = false;
  }
  return text;
}

}  // namespace satrap
