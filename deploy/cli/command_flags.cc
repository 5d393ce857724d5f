#include "deploy/cli/command_flags.h"

#include <utility>

#include "absl/strings/match.h"
#include "deploy/submit/cluster_flags.h"

namespace satrap {
namespace {

// Limits memory: the ranked lists of a whole block of users are held at once.
constexpr int kLargestK = 10000;

// More rows than any machine holds. The limit catches typing errors and prevents overflow of
// products.
constexpr int64_t kMostRows = int64_t{1} << 40;
constexpr int kMostOfModel = 10000;  // so that products stay within 64 bits

Flag SetFlag(std::vector<std::string>* sets, bool takes_run_dir = false) {
  Flag flag = TextsFlag("set", "path=value",
                        R"(override a field of the job: --set embedding_ps.replicas=4 (repeat
                           the flag for another field))",
                        sets);
  // Check here, not when the job is read, so that the message can name the flag to use instead.
  flag.take = [take = std::move(flag.take), takes_run_dir](const std::string& set) {
    const std::string problem = ProblemOfSet(set, takes_run_dir);
    return problem.empty() ? take(set) : problem;
  };
  return flag;
}

Flag ReportFlag(std::string* to) {
  return TextFlag("report", "FILE", "also write the report to FILE, as JSON", to);
}

// `flags`, followed by the flags of commands that run a job.
std::vector<Flag> WithRun(std::vector<Flag> flags, RunFlags* run) {
  for (Flag& flag : run->Table()) flags.push_back(std::move(flag));
  return flags;
}

Flag WarmupFlag(double* to) {
  return NumberFlag("warmup_seconds", "N",
                    "seconds of training before the measurement (default: 10)", to, 0);
}

}  // namespace

std::string ProblemOfSet(absl::string_view set, bool takes_run_dir) {
  const absl::string_view field = set.substr(0, set.find('='));
  // The command line sets each of these fields in another way. If an override were allowed, too,
  // one of the two values would be lost without a message.
  if (field == "action") {
    return ": the command sets it: use satrap train JOB, satrap evaluate RUN or satrap predict RUN "
           "FILE";
  }
  if (field == "predict_outputs" || absl::StartsWith(field, "predict_outputs[")) {
    return ": use satrap predict RUN FILE --output LAYER";
  }
  if (field != "run_dir") return "";
  return takes_run_dir
             ? ": cannot be set here; use --run_dir DIR to choose the run's folder"
             : ": cannot be set here, because this command chooses the run's folder itself";
}

std::vector<Flag> RunFlags::Table() {
  return {
      SetFlag(&sets, /*takes_run_dir=*/true),
      ReportFlag(&report),
      TextFlag("run_dir", "DIR", "folder of the run (default: runs/NAME-DATE-TIME)", &run_dir),
  };
}

std::vector<Flag> DemoFlags::Table() {
  return WithRun(
      {
          SwitchFlag("kafka", "train from a topic while it is written", &kafka),
          NumberFlag("rate", "N", "with --kafka: records written a second (default: 20000)", &rate,
                     1),
          NumberFlag("minutes", "N",
                     "with --kafka: write without end, and stop after that many minutes", &minutes,
                     kAboveZero),
      },
      &run);
}

absl::Status DemoFlags::Check() const {
  if (kafka || (!rate.has_value() && !minutes.has_value())) return absl::OkStatus();
  return absl::InvalidArgumentError("--rate and --minutes need --kafka");
}

std::vector<Flag> TrainFlags::Table() {
  return WithRun({TextFlag("init_from", "RUN", "start from the model in that run or model folder",
                           &init_from)},
                 &run);
}

std::vector<Flag> ValidateFlags::Table() { return {SetFlag(&sets)}; }

std::vector<Flag> PredictFlags::Table() {
  return WithRun(
      {
          TextsFlag("output", "LAYER",
                    R"(write the values of that layer, or of that input of the model such as
                       FEATURE.SEGMENT, instead of probabilities (repeat the flag for another
                       layer))",
                    &outputs),
          TextFlag("output_file", "FILE", "write the result to FILE", &run.output_file),
      },
      &run);
}

std::vector<Flag> RetrieveFlags::Table() {
  return {
      Required(TextFlag("users", "FILE", "names of the users, a line for each vector", &users)),
      Required(TextFlag("items", "FILE", "names of the items, a line for each vector", &items)),
      Required(TextFlag("relevant", "FILE", "the held-out pairs of user and item", &relevant)),
      TextFlag("seen", "FILE",
               "pairs of user and item to leave out, such as those of the training data", &seen),
      TextFlag("popularity", "FILE",
               R"(also rank items by how often they occur in FILE, a file of pairs of user and item,
                  as a baseline)",
               &popularity),
      NumbersFlag("k", "N,N,...", "lengths of the ranked list (default: 20,50)", &ks, 1, kLargestK),
      SwitchFlag("json", "print one line of JSON instead of a table", &json),
      TextFlag("output_file", "FILE",
               R"(write a line for each user to FILE: its name and its best items, as many as the
                  largest k)",
               &output_file),
  };
}

std::vector<Flag> ResumeFlags::Table() {
  return {
      TextFlag("from", "CUT", "begin from that cut instead of the newest", &from_cut),
      SetFlag(&run.sets),
      ReportFlag(&run.report),
      NamespaceOfRunFlag(&space),
      TextFlag("image", "I",
               R"(in the cluster: image of all containers (default: the image of the previous
                  submission))",
               &image),
      SwitchFlag("detach", "in the cluster: end as soon as the coordinator serves", &detach),
  };
}

std::vector<Flag> SubmitFlags::Table() {
  return {
      TextFlag("name", "RUN",
               "name of the run in the cluster: at most 35 lower-case letters, digits and '-' "
               "(default: the job's)",
               &name),
      NamespaceFlag(&space),
      TextFlag("image", "I", "image of all containers (default: kubernetes.image of the job)",
               &image),
      SetFlag(&sets),
      SwitchFlag("detach", "end as soon as the coordinator serves", &detach),
      SwitchFlag("dry_run", "print the objects, and make none", &dry_run),
  };
}

std::vector<Flag> ChaosFlags::Table() {
  return WithRun(
      {
          NumberFlag("kills", "N", "how many processes to kill (default: 20)", &kills, 0),
          NumberFlag("seed", "S",
                     R"(the seed that decides which processes are killed or stopped, and when
                        (default: 1))",
                     &seed, 0),
          NumberFlag("every_seconds", "N",
                     R"(kill at random moments, on average N seconds after a generation has
                        started, beginning after the first cut. Stops no process. Raises
                        max_restarts to --kills. Without this flag, kills are spaced by progress)",
                     &every_seconds, kAboveZero),
          NumberFlag("undisturbed", "N",
                     "first train the job N times without kills, and compare the test AUCs",
                     &undisturbed, 0),
      },
      &run);
}

std::vector<Flag> ModelFlags::Table() {
  return {
      NumberFlag("rows", "N", "count the parameters of tables of N rows each", &rows, 1, kMostRows),
      NumberFlag("features", "N", "id features of the data that a zoo model is shown with",
                 &features, 1, kMostOfModel),
      NumberFlag("numerics", "N", "numerics of that data", &numerics, 0, kMostOfModel),
      NumberFlag("dim", "N", "values of an embedding", &dim, 1, kMostOfModel),
      TextFlag("dot", "FILE", "write the graph to FILE in DOT, for Graphviz", &dot),
      SetFlag(&sets),
  };
}

std::vector<Flag> DeepFmFlags::Table() {
  return {
      NumberFlag("seconds", "N", "seconds of training that are measured (default: 20)", &seconds,
                 0),
      WarmupFlag(&warmup_seconds),
      ChoiceFlag("wire", "f32|f16|bf16",
                 "the type in which embeddings and their gradients are sent (default: f32)", &wire),
      ChoiceFlag("precision", "f32|tf32|f16|bf16", "the precision of the NN worker (default: f32)",
                 &precision),
      TextFlag("mlp", "N,N,...", "units of the layers (default: 400,400,400)", &mlp),
      TextFlag("from_file", "FILE", "train on that file, Criteo's TSV, again and again",
               &from_file),
      TextFlag("from_topic", "T", "train on that topic, again and again", &from_topic),
      TextFlag("brokers", "HOST:PORT", "the brokers of the topic", &brokers),
      SetFlag(&sets),
  };
}

absl::Status DeepFmFlags::Check() const {
  if (from_topic.empty() == brokers.empty() && (from_topic.empty() || from_file.empty())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "bench deepfm needs --brokers with --from_topic, and takes neither of them with --from_file");
}

std::vector<Flag> RecoveryFlags::Table() {
  return {
      NumberFlag("rows", "N", "rows of the table (default: 1000000)", &rows, 0, kMostRows),
      NumberFlag("kills", "N", "how many deaths are measured (default: 10)", &kills, 1),
      NumberFlag("stop", "1", "SIGSTOP instead of SIGKILL", &stop, 0, 1),
      SetFlag(&sets),
  };
}

std::vector<Flag> CutsFlags::Table() {
  return {
      NumberFlag("rows", "N", "rows of the table (default: 20000000)", &rows, 0, kMostRows),
      NumberFlag("pairs", "N", "how often it trains without cuts and with them (default: 3)",
                 &pairs, 0),
      NumberFlag("every_seconds", "N", "seconds between cuts (default: 30)", &every_seconds,
                 kAboveZero),
      NumberFlag("seconds", "N", "seconds of each training that are measured (default: 90)",
                 &seconds, kAboveZero),
      WarmupFlag(&warmup_seconds),
      SetFlag(&sets),
  };
}

}  // namespace satrap
