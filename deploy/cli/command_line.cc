#include "deploy/cli/command_line.h"

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/near_match.h"
#include "common/base/status_macros.h"
#include "deploy/cli/command_flags.h"
#include "deploy/submit/cluster_flags.h"

namespace satrap {
namespace {

constexpr size_t kMostFiles = 10000;

using WithTable = absl::FunctionRef<void(const std::vector<Flag>& table)>;

// Calls `use` with the table of a command's flags. A table points into the Flags object that made
// it, so kCommands can hold neither of the two.
template <typename Flags>
void TableOf(WithTable use) {
  Flags flags;
  use(flags.Table());
}

struct CommandInfo {
  const char* name;
  size_t min_arguments;
  size_t max_arguments;
  const char* arguments;
  void (*flags)(WithTable use);  // null: the command parses its arguments with other tables
  const char* help;
};

constexpr CommandInfo kCommands[] = {
    {"demo", 0, 0, "", TableOf<DemoFlags>,
     R"(Makes a million samples of a synthetic click log, trains DeepFM on them by all services and
reports. The same as `train demo`.
With --kafka the command starts a Kafka broker and writes the samples to a topic, from which they
are trained at the same time (docs/kafka.md).)"},
    {"train", 1, 1, "JOB", TableOf<TrainFlags>,
     R"(Trains the job of a file, or of deploy/jobs/JOB.textproto, on this machine: every role as a
process of its own. --init_from starts from the model of an earlier run.)"},
    {"validate", 1, 1, "JOB", TableOf<ValidateFlags>,
     "Checks a job, with its overrides and its data files, and prints it with all defaults."},
    {"evaluate", 1, 1, "RUN", TableOf<RunFlags>,
     R"(Scores the model of a run on its test data; --set data.test_files=... takes other data.)"},
    {"predict", 2, kMostFiles + 1, "RUN FILE...", TableOf<PredictFlags>,
     R"(Scores files in the format of the run's data with the run's model. Writes one line per record
to the standard output or to --output_file: the record's probability, or nan if the record is bad.
The lines of several files follow one another in the order in which the files are named.
With --output LAYERS each line has the values of those layers instead, separated by tabs;
`retrieve` takes such lines as vectors. Only what those layers need is computed.)"},
    {"retrieve", 2, 2, "USER_VECTORS ITEM_VECTORS --users FILE --items FILE --relevant FILE",
     TableOf<RetrieveFlags>,
     R"(Ranks all items for each user by the dot product of their vectors and compares the best with
--relevant: Recall, NDCG, HitRate and MRR at each k, as means over the users that have relevant
items. The vectors are those that `predict --output` writes; a line of nan is left out.
Line i of --users names the user of line i of USER_VECTORS, and --items likewise; a line of the
other files has a user and an item. Fields are separated by tabs, or in a line without tabs by
blanks; further ones are ignored. Names are text, compared byte by byte.)"},
    {"status", 0, 1, "[RUN]", TableOf<PlaceFlags>,
     R"(Shows what a run is doing, or how it ended and how to continue it, with its last cut, its
restarts and their causes. Without RUN: the newest training under ./runs that was started without
--run_dir. For a run in the cluster it also shows the pods.)"},
    {"resume", 1, 1, "RUN", TableOf<ResumeFlags>,
     R"(Continues a run that was stopped, interrupted or has failed, from its newest cut, and
reports as `train` does. RUN is a folder, or with --namespace a run in the cluster. --from takes an
older cut of the run, by name or by folder; what was trained after it is forgotten. --set changes
what may change between generations: numbers of processes, epochs, learning rates and the like.)"},
    {"stop", 1, 1, "RUN", TableOf<PlaceFlags>,
     R"(Makes a run in progress take a last cut and stop, and waits until its processes are gone.
`resume` continues it.)"},
    {"checkpoint", 1, 2, "RUN | list RUN | inspect CUT | verify CUT", TableOf<PlaceFlags>,
     R"(checkpoint RUN          takes a cut of a run in progress, now, and waits until it is saved
checkpoint list RUN     lists the saved cuts of a run, and what is wrong with each that is damaged
                        or missing
checkpoint inspect CUT  shows what a cut holds; CUT is its folder, RUN/checkpoints/NAME
checkpoint verify CUT   checks the size and checksum of every file of a cut, and that the run's log
                        names this cut

With --namespace the RUN of the first two is a run in the cluster that is in progress.
With one argument it is always a RUN: a run of the name `list` is ./list.)"},
    {"scale", 2, 64, "RUN FIELD=N...", TableOf<ScaleFlags>,
     R"(Gives a run in progress another number of processes, without loss: it takes a cut and
continues from it. FIELD is embedding_ps.replicas, embedding_worker.replicas, data_loader.replicas,
nn_worker.replicas, or another field that `resume --set` may change. A run that has these values
already is not restarted. In the cluster, pods are added first and removed last; if the command is
interrupted, give it again to complete the change.)"},
    {"submit", 1, 1, "JOB", TableOf<SubmitFlags>,
     R"(Trains the job of a file as pods of a Kubernetes cluster, by kubectl, which must be on the PATH
and reach the cluster (docs/kubernetes.md). Shows the run's story until it ends, and exits as
`train` does; Ctrl-C leaves the run alone. If a submission was interrupted, give the same command
again to complete it.)"},
    {"list", 0, 0, "", TableOf<NamespaceFlags>, "Lists the runs in a namespace of the cluster."},
    {"logs", 1, 3, "RUN [ROLE I]", TableOf<ClusterLogFlags>,
     R"(Shows the log of a run in the cluster: its story, or the log of process I of a role, such as
embedding_ps 0. -f means --follow.)"},
    {"delete", 1, 1, "RUN", TableOf<DeleteFlags>,
     R"(Removes a run from the cluster. A run in progress is stopped first, with a last cut, unless
--now is given. The run's folder stays.)"},
    {"story", 0, 0, "", TableOf<StoryFlags>,
     R"(Prints what a run in the cluster does, and writes its report into the run's folder. For the
pod of Job RUN.)"},
    {"members", 0, 0, "", TableOf<MembersFlags>,
     "Waits until a run in the cluster has ended. For the pod of Job RUN-members."},
    {"chaos", 1, 1, "JOB", TableOf<ChaosFlags>,
     R"(Trains a job and kills its processes, the coordinator among them, at moments that the seed
draws; stops one for 5 s, which must not restart the run, and one for 20 s, which must. At the end
it checks that every sample was trained exactly once in each epoch: by the ledger of the last cut,
and by the rows of the table `tally` if the job has one (docs/operations.md).)"},
    {"bench", 1, kMostFiles, "NAME", nullptr,
     R"(Runs a benchmark and prints JSON lines. NAME is table, sweep, rpc, parse, kafka, graph, plan,
deepfm, recovery or cuts. The first seven are programs of tests/, which take flags of their own:
kafka, which compares reading a topic with reading a file, takes --lines_per_message N,
--queue_mib N, --rows N and --rounds N.)"},
    {"models", 0, 0, "", TableOf<NoFlags>,
     R"(Lists the models of the zoo, which a job takes by `model { zoo: "NAME" }`.)"},
    {"model", 1, 1, "NAME | JOB", TableOf<ModelFlags>,
     R"(Shows a model of the zoo or of a job: its layers with shapes, parameters and FLOPs a sample,
and its graph. A model of the zoo is shown with Criteo's shape, 26 features of dim 16 and 13
numerics, unless flags set another one.)"},
    {"produce", 0, kMostFiles, "FILE... --topic T --brokers HOST:PORT", nullptr,
     "Writes the lines of files, or a synthetic click log, to a Kafka topic."},
    {"topics", 0, kMostFiles, "[RUN | TOPIC... --brokers HOST:PORT]", nullptr,
     "Shows Kafka topics: partitions, offsets, and how far a run or a group lags."},
    {"help", 0, 1, "[COMMAND]", TableOf<NoFlags>, "Explains a command."},
};

const CommandInfo* FindCommand(absl::string_view name) {
  for (const CommandInfo& info : kCommands) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

absl::Status CheckName(const std::string& name) {
  if (FindCommand(name) != nullptr) return absl::OkStatus();
  // The script ./satrap has this command, too, so suggest it to users who misspell it.
  std::vector<std::string> names = {"test"};
  for (const CommandInfo& each : kCommands) names.push_back(each.name);
  return absl::InvalidArgumentError(absl::StrCat("there is no command '", name, "'; commands are ",
                                                 absl::StrJoin(names, ", "),
                                                 DidYouMean(name, names)));
}

absl::Status Usage(const CommandInfo& info, absl::string_view problem = "") {
  return absl::InvalidArgumentError(absl::StrCat(problem, "usage: satrap ", info.name,
                                                 *info.arguments == 0 ? "" : " ", info.arguments));
}

}  // namespace

absl::StatusOr<CommandCall> ParseCommandLine(const std::vector<std::string>& args) {
  constexpr absl::string_view kInstallDir = "--install_dir=";
  CommandCall call;
  call.name = "help";
  auto next = args.begin();
  // The script ./satrap passes this flag before all others; it is not a flag for users.
  if (next != args.end() && absl::StartsWith(*next, kInstallDir)) {
    call.install_dir = (next++)->substr(kInstallDir.size());
  }
  if (next == args.end()) return call;
  const std::vector<std::string> rest(next, args.end());
  // Accept --help anywhere, even if the rest of the command line is wrong.
  const bool asks_for_help = AsksForHelp(rest);
  if (asks_for_help && AsksForHelp({rest[0]})) return call;
  RETURN_IF_ERROR(CheckName(rest[0]));
  if (asks_for_help) {
    if (rest[0] != "help") call.args = {rest[0]};
    return call;
  }
  call.name = rest[0];
  call.args.assign(rest.begin() + 1, rest.end());
  if (call.name == "help") {
    ASSIGN_OR_RETURN(call.args, ParseArguments(call, {}));
    if (!call.args.empty()) RETURN_IF_ERROR(CheckName(call.args[0]));
  }
  return call;
}

absl::StatusOr<std::vector<std::string>> ParseArguments(const CommandCall& call,
                                                        const std::vector<Flag>& flags) {
  const CommandInfo* const info = FindCommand(call.name);
  ASSIGN_OR_RETURN(std::vector<std::string> arguments, ParseFlags(call.args, flags));
  if (info != nullptr &&
      (arguments.size() < info->min_arguments || arguments.size() > info->max_arguments)) {
    return Usage(*info);
  }
  return arguments;
}

absl::Status CheckArguments(const CommandCall& call) {
  const CommandInfo* const info = FindCommand(call.name);
  absl::Status status;
  if (info != nullptr && info->flags != nullptr) {
    info->flags(
        [&](const std::vector<Flag>& table) { status = ParseArguments(call, table).status(); });
  }
  return status;
}

absl::StatusOr<std::pair<std::string, std::string>> ParseCheckpoint(
    const CommandCall& call, const std::vector<Flag>& flags) {
  ASSIGN_OR_RETURN(const std::vector<std::string> arguments, ParseArguments(call, flags));
  const std::string& first = arguments[0];
  for (const absl::string_view word : {"list", "inspect", "verify"}) {
    if (first != word) continue;
    if (arguments.size() == 2) return std::make_pair(first, arguments[1]);
    // Do not treat the word as the name of a run: a user who forgot the argument does not want to
    // save a cut.
    return absl::InvalidArgumentError(absl::StrCat(
        "usage: satrap checkpoint ", word, word == "list" ? " RUN" : " CUT",
        "; to save a cut of a run named '", word, "', type: satrap checkpoint ./", word));
  }
  if (arguments.size() == 1) return std::make_pair(std::string(), first);
  return absl::InvalidArgumentError(absl::StrCat("'checkpoint ", first,
                                                 "': ", Usage(*FindCommand(call.name)).message(),
                                                 DidYouMean(first, {"list", "inspect", "verify"})));
}

absl::StatusOr<std::vector<std::string>> ParseScale(const CommandCall& call,
                                                    const std::vector<Flag>& flags) {
  ASSIGN_OR_RETURN(std::vector<std::string> arguments, ParseArguments(call, flags));
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (!absl::StrContains(arguments[i], "=")) {
      return Usage(*FindCommand(call.name),
                   absl::StrCat("'", arguments[i], "' is not of the form FIELD=N; "));
    }
    const std::string problem = ProblemOfSet(arguments[i], /*takes_run_dir=*/false);
    if (!problem.empty()) return absl::InvalidArgumentError(arguments[i] + problem);
  }
  return arguments;
}

std::string HelpText(absl::string_view command_name) {
  const CommandInfo* info = FindCommand(command_name);
  if (info == nullptr || command_name == "help") {
    std::string text = "usage: satrap COMMAND [ARGUMENTS] [FLAGS]\n\n";
    for (const CommandInfo& each : kCommands) {
      absl::StrAppend(&text, "  ", each.name, " ", each.arguments, "\n");
    }
    absl::StrAppend(&text, "\n`satrap COMMAND --help` explains one.\n");
    return text;
  }
  std::string text =
      absl::StrCat("usage: satrap ", info->name, " ", info->arguments, "\n\n", info->help, "\n");
  if (info->flags != nullptr) {
    info->flags([&text](const std::vector<Flag>& table) {
      if (!table.empty()) absl::StrAppend(&text, "\n", FlagsHelp(table));
    });
  }
  // The benchmark programs in tests/ print their own help. These three run in this program.
  if (command_name == "bench") {
    constexpr std::pair<const char*, void (*)(WithTable)> kRuns[] = {
        {"deepfm: a training", TableOf<DeepFmFlags>},
        {"recovery: the time from a process's death to the next step", TableOf<RecoveryFlags>},
        {"cuts: what cuts cost", TableOf<CutsFlags>},
    };
    for (const auto& [what, flags] : kRuns) {
      flags([&text, what = what](const std::vector<Flag>& table) {
        absl::StrAppend(&text, "\n", what, "\n", FlagsHelp(table));
      });
    }
  }
  return text;
}

}  // namespace satrap
