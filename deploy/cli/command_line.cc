#include "deploy/cli/command_line.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/near_match.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

// Ranked lists are held in memory for a block of users.
constexpr int kLargestK = 10000;

constexpr size_t kMostFiles = 10000;

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
    {"demo", Command::kDemo, 0, 0, "", "kafka rate minutes set report run_dir",
     "Makes a million samples of a synthetic click log, trains DeepFM on them by all services and\n"
     "reports. The same as `train demo`.\n"
     "With --kafka the samples go through a topic of a Kafka broker, which is started for it, and\n"
     "are trained while they are written (docs/kafka.md)."},
    {"train", Command::kTrain, 1, 1, "JOB", "set report run_dir init_from",
     "Trains the job of a file, or of deploy/jobs/JOB.textproto, on this machine: every role as a\n"
     "process of its own. --init_from starts from the model of an earlier run."},
    {"validate", Command::kValidate, 1, 1, "JOB", "set",
     "Checks a job, with its overrides and its data files, and prints it with all defaults."},
    {"evaluate", Command::kEvaluate, 1, 1, "RUN", "set report run_dir",
     "Scores the model of a run on its test data; --set data.test_files=... takes other data."},
    {"predict", Command::kPredict, 2, kMostFiles + 1, "RUN FILE...",
     "set report run_dir output output_file",
     "Scores files, which have the format of the run's data, with the model of the run: a line "
     "for\n"
     "each record, its probability or nan if it is bad, to the standard output or to "
     "--output_file.\n"
     "The lines of several files follow one another in the order in which the files are named.\n"
     "With --output the line has the values of these layers instead, separated by tabs: vectors\n"
     "for `retrieve`. Only what they need is computed."},
    {"retrieve", Command::kRetrieve, 2, 2,
     "USER_VECTORS ITEM_VECTORS --users FILE --items FILE --relevant FILE",
     "users items relevant seen popularity k json output_file",
     "Ranks all items for each user by the dot product of their vectors and compares the best "
     "with\n"
     "--relevant: Recall, NDCG, HitRate and MRR at each k, as means over the users that have "
     "relevant\n"
     "items. The vectors are those that `predict --output` writes; a line of nan is left out.\n"
     "Line i of --users names the user of line i of USER_VECTORS, and --items likewise; a line of\n"
     "the other files has a user and an item. Fields are separated by tabs, or in a line without\n"
     "tabs by blanks; further ones are ignored. Names are text, compared byte by byte."},
    {"status", Command::kStatus, 0, 1, "[RUN]", "",
     "Says what a run is doing; or how it ended, its last cut, its restarts with their causes, "
     "and\n"
     "how to go on. By default the newest training under ./runs, of those without --run_dir."},
    {"resume", Command::kResume, 1, 1, "RUN", "from set report",
     "Goes on with a run that was stopped, interrupted or has failed, from its newest cut, and\n"
     "reports as `train` does. --from takes an older cut of the run, by name or by folder; what\n"
     "was trained after it is forgotten. --set changes what may change between generations:\n"
     "numbers of processes, epochs, learning rates and the like."},
    {"stop", Command::kStop, 1, 1, "RUN", "",
     "Lets a run in progress take a last cut and end, and waits until its processes are gone.\n"
     "`resume` goes on."},
    {"checkpoint", Command::kCheckpoint, 1, 2, "RUN | list RUN | inspect CUT | verify CUT", "",
     "checkpoint RUN          takes a cut of a run in progress, now, and waits until it is saved\n"
     "checkpoint list RUN     the saved cuts of a run; what is wrong with those that are not "
     "whole\n"
     "checkpoint inspect CUT  what a cut holds; CUT is its folder, RUN/checkpoints/NAME\n"
     "checkpoint verify CUT   reads every file of a cut, checks its size and checksum, and that "
     "it\n"
     "                        is the cut that the run's log names\n"
     "\n"
     "With one argument it is always a RUN: a run of the name `list` is ./list."},
    {"scale", Command::kScale, 2, 64, "RUN FIELD=N...", "",
     "Gives a run in progress another number of processes, without loss: it takes a cut and goes\n"
     "on from it. FIELD is embedding_ps.replicas, embedding_worker.replicas, "
     "data_loader.replicas,\n"
     "nn_worker.replicas, or another field that `resume --set` may change. A run that has these\n"
     "values already is not restarted."},
    {"chaos", Command::kChaos, 1, 1, "JOB",
     "kills seed every_seconds undisturbed set report run_dir",
     "Trains a job and kills its processes, the coordinator among them, at moments that the seed\n"
     "draws; stops one for 5 s, which must not restart the run, and one for 20 s, which must. At "
     "the\n"
     "end it checks that every sample was trained exactly once in each epoch: by the ledger of "
     "the\n"
     "last cut, and by the rows of the table `tally` if the job has one (docs/operations.md)."},
    {"bench", Command::kBench, 1, 1, "NAME", "*",
     "Runs a benchmark and prints one JSON line. NAME is table, rpc, parse, kafka, graph, plan,\n"
     "deepfm, recovery or cuts. Flags of\n"
     "deepfm    --seconds N, --warmup_seconds N, --wire f32|f16|bf16, --mlp 400,400,400,\n"
     "          --precision f32|f16|bf16,\n"
     "          --from_file FILE (Criteo TSV) or --from_topic T --brokers HOST:PORT, --set\n"
     "kafka     --lines_per_message N, --queue_mib N, --rows N, --rounds N: a topic beside a "
     "file\n"
     "recovery  --rows N, --kills N, --stop 1 (SIGSTOP instead of SIGKILL), --set: from a death "
     "to\n"
     "          the next step\n"
     "cuts      --rows N, --pairs N, --every_seconds N, --seconds N, --warmup_seconds N, --set: "
     "what\n"
     "          cuts cost"},
    {"models", Command::kModels, 0, 0, "", "",
     "Lists the models of the zoo, which a job takes by `model { zoo: \"NAME\" }`."},
    {"model", Command::kModel, 1, 1, "NAME | JOB", "rows features numerics dim dot set",
     "Shows a model of the zoo or of a job: its layers with shapes, parameters and FLOPs a "
     "sample,\n"
     "and its graph. A model of the zoo is shown with Criteo's shape, 26 features of dim 16 and "
     "13\n"
     "numerics, if the flags say no other."},
    {"produce", Command::kProduce, 0, 64, "FILE... --topic T --brokers HOST:PORT", "*",
     "Writes the lines of files, or a synthetic click log, to a Kafka topic."},
    {"topics", Command::kTopics, 0, 64, "[RUN | TOPIC... --brokers HOST:PORT]", "*",
     "Shows Kafka topics: partitions, offsets, and how far a run or a group is behind."},
    {"help", Command::kHelp, 0, 1, "[COMMAND]", "", "Explains a command."},
};

constexpr std::pair<const char*, const char*> kFlagHelp[] = {
    {"kafka", "--kafka              train from a topic while it is written"},
    {"rate", "--rate N             with --kafka: records written a second (default: 20000)"},
    {"minutes",
     "--minutes N          with --kafka: write without end, and stop after so many minutes"},
    {"set",
     "--set path=value     override a field of the job: --set embedding_ps.replicas=4\n"
     "                     (again for another field)"},
    {"report", "--report FILE        write the report there too, as JSON"},
    {"run_dir", "--run_dir DIR        folder of the run (default: runs/NAME-DATE-TIME)"},
    {"init_from", "--init_from RUN      start from the model of that run, or of that model folder"},
    {"from", "--from CUT           begin from that cut instead of the newest"},
    {"kills", "--kills N            how many processes to kill (default: 20)"},
    {"seed", "--seed S             draws which ones, and when (default: 1)"},
    {"every_seconds",
     "--every_seconds N    kill at random moments, on average N seconds after the start of a\n"
     "                     generation, beginning after the first cut, and stop none; without it\n"
     "                     kills are spaced by progress. Raises max_restarts to --kills"},
    {"undisturbed",
     "--undisturbed N      before that, train the job N times without a kill, and compare the\n"
     "                     test AUC with theirs"},
    {"rows", "--rows N             count the parameters of tables of N rows each"},
    {"features", "--features N         id features of the data that a zoo model is shown with"},
    {"numerics", "--numerics N         numerics of that data"},
    {"dim", "--dim N              values of an embedding"},
    {"dot", "--dot FILE           write the graph there in DOT, for Graphviz"},
    {"output",
     "--output LAYER       write the values of that layer, or of that input of the model such as\n"
     "                     FEATURE.SEGMENT, in the place of probabilities (again for another)"},
    {"users", "--users FILE         names of the users, a line for each vector"},
    {"items", "--items FILE         names of the items, a line for each vector"},
    {"relevant", "--relevant FILE      the held-out pairs of user and item"},
    {"seen", "--seen FILE          pairs of user and item that are not ranked: those of training"},
    {"popularity",
     "--popularity FILE    rank items by how often FILE, of pairs, has them, too: a baseline"},
    {"k", "--k N,N,...          lengths of the ranked list (default: 20,50)"},
    {"json", "--json               print one line of JSON instead of a table"},
    {"output_file",
     "--output_file FILE   write the result of predict there; of retrieve, a line for each user:\n"
     "                     its name and its best items, as many as the largest k"},
};

const CommandInfo* FindCommand(absl::string_view name) {
  for (const CommandInfo& info : kCommands) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

// Both are padded with spaces, so that a flag does not match inside another one's name.
bool TakesFlag(const CommandInfo& info, absl::string_view flag) {
  return absl::StrContains(absl::StrCat(" ", info.flags, " "), absl::StrCat(" ", flag, " "));
}

absl::StatusOr<const CommandInfo*> CommandOf(const std::string& name) {
  const CommandInfo* info = FindCommand(name);
  if (info != nullptr) return info;
  // The script ./satrap has this one, too; who misspells it should be told.
  std::vector<std::string> names = {"test"};
  for (const CommandInfo& each : kCommands) names.push_back(each.name);
  return absl::InvalidArgumentError(absl::StrCat("there is no command '", name, "'; commands are ",
                                                 absl::StrJoin(names, ", "),
                                                 DidYouMean(name, names)));
}

bool IsHelp(const std::string& argument) { return argument == "--help" || argument == "-h"; }

absl::StatusOr<std::string> NameOfCommand(const std::string& name) {
  ASSIGN_OR_RETURN(const CommandInfo* info, CommandOf(name));
  return std::string(info->name);
}

// Returns the value of the flag at args[*i]. If it is the next argument, advances *i to it.
absl::StatusOr<std::string> TakeValue(const std::vector<std::string>& args, size_t* i) {
  const size_t equals = args[*i].find('=');
  if (equals != std::string::npos) return args[*i].substr(equals + 1);
  if (*i + 1 >= args.size()) {
    return absl::InvalidArgumentError(absl::StrCat(args[*i], " needs a value"));
  }
  return args[++*i];
}

// Refuses --set for the fields that the command itself sets.
absl::Status CheckSet(const CommandInfo& info, const std::string& set) {
  const std::string field = set.substr(0, set.find('='));
  // As it was typed: `scale` takes assignments without the flag.
  const absl::string_view flag = info.command == Command::kScale ? "" : "--set ";
  if (field == "action") {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, set, ": the command says what is done: satrap train JOB, ",
                     "satrap evaluate RUN or satrap predict RUN FILE"));
  }
  if (field == "predict_outputs" || absl::StartsWith(field, "predict_outputs[")) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, set, ": use satrap predict RUN FILE --output LAYER"));
  }
  if (field == "run_dir") {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, set, ": ",
        TakesFlag(info, "run_dir") ? "use --run_dir DIR" : "this command chooses the folder"));
  }
  return absl::OkStatus();
}

// Takes the value of --`flag` if that is the flag's name.
absl::Status TakeCount(const std::string& name, const std::string& value, const char* flag,
                       int64_t least, int64_t most, int64_t* to) {
  if (name != flag) return absl::OkStatus();
  if (absl::SimpleAtoi(value, to) && *to >= least && *to <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " ", value, " is not a whole number in [", least, ", ", most, "]"));
}

// The flags of `retrieve`.
absl::Status TakeRetrieveFlag(const std::string& name, const std::string& value,
                              CommandLine* line) {
  if (name == "users") line->users = value;
  if (name == "items") line->items = value;
  if (name == "relevant") line->relevant = value;
  if (name == "seen") line->seen = value;
  if (name == "popularity") line->popularity = value;
  if (name != "k") return absl::OkStatus();
  line->ks.clear();
  for (const absl::string_view text : absl::StrSplit(value, ',')) {
    int k = 0;
    if (!absl::SimpleAtoi(text, &k) || k < 1 || k > kLargestK) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--k ", value, ": '", text, "' is not a whole number in [1, ", kLargestK, "]"));
    }
    line->ks.push_back(k);
  }
  return absl::OkStatus();
}

absl::Status TakeFlag(const CommandInfo& info, const std::vector<std::string>& args, size_t* i,
                      CommandLine* line) {
  const std::string& typed = args[*i];
  const std::string name = typed.substr(2, typed.find('=') - 2);
  // Each benchmark has flags of its own, which are passed on. A flag without "=" takes the next
  // argument as its value unless that is a flag, too.
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
  if (name == "kafka" || name == "json") {
    if (absl::StrContains(typed, "=")) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " takes no value"));
    }
    (name == "kafka" ? line->kafka : line->json) = true;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string value, TakeValue(args, i));
  // `--report=$FILE` with FILE unset would otherwise be as if the flag had not been given.
  if (value.empty()) return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
  if (name == "set") RETURN_IF_ERROR(CheckSet(info, value));
  if (name == "set") line->sets.push_back(value);
  if (name == "report") line->report = value;
  if (name == "run_dir") line->run_dir = value;
  if (name == "init_from") line->init_from = value;
  if (name == "output") line->outputs.push_back(value);
  if (name == "output_file") line->output_file = value;
  if (info.command == Command::kRetrieve) RETURN_IF_ERROR(TakeRetrieveFlag(name, value, line));
  if (name == "from") line->from_cut = value;
  if (name == "kills" && (!absl::SimpleAtoi(value, &line->kills) || line->kills < 0)) {
    return absl::InvalidArgumentError(absl::StrCat("--kills ", value, " is not a number >= 0"));
  }
  if (name == "undisturbed" &&
      (!absl::SimpleAtoi(value, &line->undisturbed) || line->undisturbed < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--undisturbed ", value, " is not a number >= 0"));
  }
  if (name == "every_seconds" &&
      (!absl::SimpleAtod(value, &line->every_seconds) || !(line->every_seconds > 0))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--every_seconds ", value, " is not a number > 0"));
  }
  if (name == "rate" && (!absl::SimpleAtod(value, &line->rate) || !(line->rate >= 1))) {
    return absl::InvalidArgumentError(absl::StrCat("--rate ", value, " is not a number >= 1"));
  }
  if (name == "minutes" && (!absl::SimpleAtod(value, &line->minutes) || !(line->minutes > 0))) {
    return absl::InvalidArgumentError(absl::StrCat("--minutes ", value, " is not a number > 0"));
  }
  // The bounds keep products of them within 64 bits.
  RETURN_IF_ERROR(TakeCount(name, value, "rows", 1, int64_t{1} << 40, &line->rows));
  RETURN_IF_ERROR(TakeCount(name, value, "features", 1, 10000, &line->features));
  RETURN_IF_ERROR(TakeCount(name, value, "numerics", 0, 10000, &line->numerics));
  RETURN_IF_ERROR(TakeCount(name, value, "dim", 1, 10000, &line->dim));
  if (name == "dot") line->dot = value;
  if (name == "seed" && !absl::SimpleAtoi(value, &line->seed)) {
    return absl::InvalidArgumentError(absl::StrCat("--seed ", value, " is not a number >= 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckRetrieve(const CommandInfo& info, const CommandLine& line) {
  const std::pair<const char*, const std::string*> needed[] = {
      {"--users", &line.users}, {"--items", &line.items}, {"--relevant", &line.relevant}};
  for (const auto& [flag, value] : needed) {
    if (value->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("retrieve needs ", flag, " FILE; usage: satrap retrieve ", info.arguments));
    }
  }
  return absl::OkStatus();
}

// Splits `checkpoint WORD CUT` into a command and its argument. One argument alone is a run.
absl::Status TakeCheckpointWord(const CommandInfo& info, CommandLine* line) {
  constexpr std::pair<absl::string_view, Command> kWords[] = {
      {"list", Command::kCheckpointList},
      {"inspect", Command::kCheckpointInspect},
      {"verify", Command::kCheckpointVerify},
  };
  const std::string first = line->arguments[0];
  for (const auto& [word, command] : kWords) {
    if (first != word) continue;
    // Not taken for a run of that name: who forgot an argument does not want a cut to be taken.
    if (line->arguments.size() == 2) {
      line->command = command;
      line->arguments.erase(line->arguments.begin());
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "usage: satrap checkpoint ", word, word == "list" ? " RUN" : " CUT",
        "; a cut of a run named '", word, "' is taken by: satrap checkpoint ./", word));
  }
  if (line->arguments.size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'checkpoint ", first,
                                                 "': usage: satrap checkpoint ", info.arguments,
                                                 DidYouMean(first, {"list", "inspect", "verify"})));
}

// FIELD=N of `scale`.
absl::Status CheckFields(const CommandInfo& info, const CommandLine& line) {
  for (size_t i = 1; i < line.arguments.size(); ++i) {
    if (!absl::StrContains(line.arguments[i], "=")) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", line.arguments[i], "' is not of the form FIELD=N; usage: satrap scale ",
                       info.arguments));
    }
    RETURN_IF_ERROR(CheckSet(info, line.arguments[i]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& args) {
  CommandLine line;
  size_t i = 0;
  // For the script ./satrap, which passes it first; it is no flag for users.
  if (i < args.size() && absl::StartsWith(args[i], "--install_dir=")) {
    line.install_dir = args[i++].substr(std::string("--install_dir=").size());
  }
  if (i == args.size()) return line;
  // Wherever it stands: who asks for help need not have typed the rest correctly.
  const auto help = std::find_if(args.begin() + static_cast<std::ptrdiff_t>(i), args.end(), IsHelp);
  if (help != args.end()) {
    if (!IsHelp(args[i])) {
      ASSIGN_OR_RETURN(line.command_name, NameOfCommand(args[i]));
    }
    return line;
  }
  ASSIGN_OR_RETURN(const CommandInfo* info, CommandOf(args[i++]));
  line.command = info->command;
  line.command_name = info->name;
  if (line.command == Command::kProduce || line.command == Command::kTopics) {
    // They have flags of their own (deploy/kafka/flags.h).
    line.arguments.assign(args.begin() + static_cast<std::ptrdiff_t>(i), args.end());
    return line;
  }
  for (; i < args.size(); ++i) {
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
  if (line.command == Command::kCheckpoint) RETURN_IF_ERROR(TakeCheckpointWord(*info, &line));
  if (!line.kafka && (line.minutes > 0 || line.rate != CommandLine().rate)) {
    return absl::InvalidArgumentError("--rate and --minutes need --kafka");
  }
  if (line.command == Command::kScale) RETURN_IF_ERROR(CheckFields(*info, line));
  if (line.command == Command::kRetrieve) RETURN_IF_ERROR(CheckRetrieve(*info, line));
  if (line.command == Command::kHelp) {
    line.command_name.clear();
    if (!line.arguments.empty()) {
      ASSIGN_OR_RETURN(line.command_name, NameOfCommand(line.arguments[0]));
    }
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
