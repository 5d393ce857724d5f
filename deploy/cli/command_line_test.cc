#include "deploy/cli/command_line.h"

#include <memory>

#include "absl/strings/str_split.h"
#include "deploy/cli/command_flags.h"
#include "deploy/submit/cluster_flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A call with its flags parsed.
template <typename Flags>
struct Parsed {
  CommandCall call;
  std::vector<std::string> arguments;
  Flags flags;
};

// REQUIRES: `args` are valid
template <typename Flags>
std::unique_ptr<Parsed<Flags>> Parse(const std::vector<std::string>& args) {
  auto parsed = std::make_unique<Parsed<Flags>>();
  auto call = ParseCommandLine(args);
  EXPECT_TRUE(call.ok()) << call.status();
  parsed->call = *std::move(call);
  auto arguments = ParseArguments(parsed->call, parsed->flags.Table());
  EXPECT_TRUE(arguments.ok()) << arguments.status();
  if (arguments.ok()) parsed->arguments = *std::move(arguments);
  return parsed;
}

// The error printed by a program that does not link the command.
std::string ErrorOf(const std::vector<std::string>& args) {
  const auto call = ParseCommandLine(args);
  if (!call.ok()) return std::string(call.status().message());
  return std::string(CheckArguments(*call).message());
}

std::string ScaleErrorOf(const std::vector<std::string>& args) {
  return std::string(ParseScale({"scale", args}, {}).status().message());
}

std::string CheckpointErrorOf(const std::vector<std::string>& args) {
  return std::string(ParseCheckpoint({"checkpoint", args}, {}).status().message());
}

TEST(ParseCommandLine, TheDemoTakesKafkaWithItsRateAndTime) {
  const auto demo = Parse<DemoFlags>({"demo", "--kafka", "--rate", "500", "--minutes=2"});
  EXPECT_TRUE(demo->flags.kafka);
  EXPECT_EQ(demo->flags.rate, 500);
  EXPECT_EQ(demo->flags.minutes, 2);
  EXPECT_EQ(demo->flags.Check(), absl::OkStatus());
  EXPECT_FALSE(Parse<DemoFlags>({"demo"})->flags.kafka);
  EXPECT_EQ(ErrorOf({"demo", "--kafka=yes"}), "--kafka takes no value");
  EXPECT_EQ(Parse<DemoFlags>({"demo", "--rate=5"})->flags.Check().message(),
            "--rate and --minutes need --kafka");
  EXPECT_EQ(ErrorOf({"demo", "--kafka", "--rate=0"}), "--rate 0 is not a number >= 1");
}

TEST(ParseCommandLine, CommandsOfKafkaTakeTheirArgumentsAsTyped) {
  const auto call = ParseCommandLine({"produce", "a.csv", "--topic", "T", "--rate=5"});
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->name, "produce");
  EXPECT_THAT(call->args, ElementsAre("a.csv", "--topic", "T", "--rate=5"));
  EXPECT_EQ(CheckArguments(*call), absl::OkStatus());
  EXPECT_EQ(ParseCommandLine({"topics"})->name, "topics");
  EXPECT_THAT(ParseCommandLine({"topics", "--help"})->args, ElementsAre("topics"));
}

TEST(ParseCommandLine, AModelIsShownWithTheShapeOfItsData) {
  const auto model = Parse<ModelFlags>({"model", "dcnv2", "--rows=5389", "--features", "10",
                                        "--numerics=0", "--dim=10", "--dot=g.dot"});
  EXPECT_EQ(model->flags.rows, 5389);
  EXPECT_EQ(model->flags.features, 10);
  EXPECT_EQ(model->flags.numerics, 0);
  EXPECT_EQ(model->flags.dim, 10);
  EXPECT_EQ(model->flags.dot, "g.dot");
  EXPECT_EQ(ErrorOf({"models"}), "");
  EXPECT_EQ(ErrorOf({"model", "fm", "--rows=many"}),
            "--rows many is not a whole number in [1, 1099511627776]");
  EXPECT_EQ(ErrorOf({"model", "fm", "--features=0"}),
            "--features 0 is not a whole number in [1, 10000]");
  EXPECT_EQ(ErrorOf({"model"}), "usage: satrap model NAME | JOB");
}

TEST(ParseCommandLine, UnderstandsATraining) {
  const auto train = Parse<TrainFlags>({"--install_dir=/opt/satrap", "train", "demo", "--set",
                                        "seed=7", "--set=mode=SYNC", "--report", "out.json",
                                        "--run_dir=r", "--init_from", "runs/a"});
  EXPECT_EQ(train->call.name, "train");
  EXPECT_EQ(train->call.install_dir, "/opt/satrap");
  EXPECT_THAT(train->arguments, ElementsAre("demo"));
  EXPECT_THAT(train->flags.run.sets, ElementsAre("seed=7", "mode=SYNC"));
  EXPECT_EQ(train->flags.run.report, "out.json");
  EXPECT_EQ(train->flags.run.run_dir, "r");
  EXPECT_EQ(train->flags.init_from, "runs/a");
}

TEST(ParseCommandLine, ARunIsSubmittedToANamespace) {
  const auto submit = Parse<SubmitFlags>({"submit", "demo", "--name=nightly", "--namespace", "ml",
                                          "--image=satrap:1", "--set", "seed=7", "--detach"});
  EXPECT_THAT(submit->arguments, ElementsAre("demo"));
  EXPECT_EQ(submit->flags.name, "nightly");
  EXPECT_EQ(submit->flags.space, "ml");
  EXPECT_EQ(submit->flags.image, "satrap:1");
  EXPECT_THAT(submit->flags.sets, ElementsAre("seed=7"));
  EXPECT_TRUE(submit->flags.detach);
  EXPECT_FALSE(submit->flags.dry_run);
  EXPECT_THAT(ErrorOf({"submit", "demo", "--set", "run_dir=/r"}), HasSubstr("run_dir=/r: "));
  EXPECT_THAT(ErrorOf({"submit"}), HasSubstr("usage: satrap submit JOB"));
}

TEST(ParseCommandLine, ALogIsThatOfARunOrOfAProcess) {
  const auto logs =
      Parse<ClusterLogFlags>({"logs", "demo", "embedding_ps", "1", "--previous", "--follow"});
  EXPECT_THAT(logs->arguments, ElementsAre("demo", "embedding_ps", "1"));
  EXPECT_TRUE(logs->flags.previous);
  EXPECT_TRUE(logs->flags.follow);
  EXPECT_TRUE(Parse<DeleteFlags>({"delete", "demo", "--now"})->flags.now);
  EXPECT_EQ(Parse<NamespaceFlags>({"list", "--namespace=ml"})->flags.space, "ml");
}

TEST(ParseCommandLine, GivesABenchmarkItsOwnFlags) {
  const auto call = ParseCommandLine({"bench", "deepfm", "--mlp", "64,32", "--seconds=5"});
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_THAT(call->args, ElementsAre("deepfm", "--mlp", "64,32", "--seconds=5"));
  EXPECT_EQ(CheckArguments(*call), absl::OkStatus());
}

TEST(ParseCommandLine, SaysWhatWasProbablyMeant) {
  EXPECT_THAT(ErrorOf({"trian", "demo"}), HasSubstr("did you mean train?"));
  EXPECT_THAT(ErrorOf({"train", "demo", "--raport=x"}), HasSubstr("did you mean --report?"));
  EXPECT_THAT(ErrorOf({"frobnicate"}), HasSubstr("'frobnicate'; commands are"));
  EXPECT_THAT(ErrorOf({"frobnicate"}), Not(HasSubstr("did you mean")));
}

TEST(ParseCommandLine, RefusesWhatDoesNotFit) {
  EXPECT_EQ(ErrorOf({"train"}), "usage: satrap train JOB");
  EXPECT_EQ(ErrorOf({"train", "a", "b"}), "usage: satrap train JOB");
  EXPECT_EQ(ErrorOf({"train", "a", "--set"}), "--set needs a value: --set path=value");
  EXPECT_EQ(ErrorOf({"models", "--report=x"}), "unknown flag --report; no flag is taken");
  EXPECT_EQ(ErrorOf({"help", "train", "stop"}), "usage: satrap help [COMMAND]");
}

TEST(ParseCommandLine, RefusesAnEmptyValue) {
  EXPECT_THAT(ErrorOf({"train", "a", "--report="}), HasSubstr("--report needs a value"));
  EXPECT_THAT(ErrorOf({"train", "a", "--run_dir", ""}), HasSubstr("--run_dir needs a value"));
  EXPECT_THAT(ErrorOf({"predict", "a", "b", "--output="}), HasSubstr("--output needs a value"));
}

TEST(ParseCommandLine, PredictNamesLayersInOrder) {
  const auto predict = Parse<PredictFlags>({"predict", "run", "f", "--output", "user_vector",
                                            "--output=item.embedding", "--output_file", "out"});
  EXPECT_THAT(predict->flags.outputs, ElementsAre("user_vector", "item.embedding"));
  EXPECT_EQ(predict->flags.run.output_file, "out");
  EXPECT_EQ(ErrorOf({"predict", "a", "b", "--set", "predict_outputs=x"}),
            "--set predict_outputs=x: use satrap predict RUN FILE --output LAYER");
}

TEST(ParseCommandLine, PredictTakesOneFileOrMore) {
  EXPECT_THAT(Parse<PredictFlags>({"predict", "run", "b", "--output_file=o", "a", "c"})->arguments,
              ElementsAre("run", "b", "a", "c"));
  EXPECT_EQ(ErrorOf({"predict", "run"}), "usage: satrap predict RUN FILE...");
}

TEST(ParseCommandLine, RetrieveTakesItsFilesByFlags) {
  const std::vector<std::string> needed = {"retrieve", "u",      "i",          "--users", "un",
                                           "--items",  "inames", "--relevant", "held_out"};
  const auto retrieve = Parse<RetrieveFlags>(needed);
  EXPECT_THAT(retrieve->arguments, ElementsAre("u", "i"));
  EXPECT_EQ(retrieve->flags.users, "un");
  EXPECT_EQ(retrieve->flags.items, "inames");
  EXPECT_EQ(retrieve->flags.relevant, "held_out");
  EXPECT_THAT(retrieve->flags.ks, ElementsAre(20, 50));
  EXPECT_FALSE(retrieve->flags.json);
  std::vector<std::string> all = needed;
  for (const char* flag : {"--k=5,1", "--json", "--seen=s", "--popularity=p", "--output_file=o"}) {
    all.emplace_back(flag);
  }
  const auto full = Parse<RetrieveFlags>(all);
  EXPECT_THAT(full->flags.ks, ElementsAre(5, 1));
  EXPECT_TRUE(full->flags.json);
  EXPECT_EQ(full->flags.seen + full->flags.popularity + full->flags.output_file, "spo");

  EXPECT_THAT(ErrorOf({"retrieve", "u", "--users=a", "--items=b", "--relevant=c"}),
              HasSubstr("usage: satrap retrieve USER_VECTORS ITEM_"));
  EXPECT_EQ(ErrorOf({"retrieve", "u", "i", "--users=a", "--relevant=b"}),
            "--items is missing; give --items FILE");
  for (const char* k : {"0", "5,", "x", "1,99999"}) {
    std::vector<std::string> wrong = needed;
    wrong.push_back(std::string("--k=") + k);
    EXPECT_THAT(ErrorOf(wrong), HasSubstr(" is not a whole number in [1, 10000]")) << k;
  }
}

TEST(ParseCommandLine, RefusesToSetWhatTheCommandSets) {
  EXPECT_THAT(ErrorOf({"train", "a", "--set", "run_dir=x"}), HasSubstr("use --run_dir DIR"));
  EXPECT_EQ(
      ErrorOf({"resume", "a", "--set", "run_dir=x"}),
      "--set run_dir=x: cannot be set here, because this command chooses the run's folder itself");
  EXPECT_THAT(ErrorOf({"train", "a", "--set", "action=EVALUATE"}),
              HasSubstr("satrap evaluate RUN"));
  EXPECT_EQ(ErrorOf({"train", "a", "--set", "data.test_files="}), "");
}

TEST(ParseCommandLine, UnderstandsTheCommandsOfARunInProgress) {
  const auto resume = Parse<ResumeFlags>(
      {"resume", "runs/a", "--from", "cut_0001_000002", "--set", "epochs=3", "--report=r"});
  EXPECT_EQ(resume->flags.from_cut, "cut_0001_000002");
  EXPECT_THAT(resume->flags.run.sets, ElementsAre("epochs=3"));
  EXPECT_EQ(resume->flags.run.report, "r");
  EXPECT_EQ(ErrorOf({"stop", "runs/a"}), "");
  EXPECT_EQ(ErrorOf({"stop"}), "usage: satrap stop RUN");
  const auto chaos = Parse<ChaosFlags>({"chaos", "job", "--kills", "7", "--seed=9"});
  EXPECT_EQ(chaos->flags.kills, 7);
  EXPECT_EQ(chaos->flags.seed, 9u);
  const auto random =
      Parse<ChaosFlags>({"chaos", "job", "--every_seconds", "2.5", "--undisturbed=3"});
  EXPECT_EQ(random->flags.every_seconds, 2.5);
  EXPECT_EQ(random->flags.undisturbed, 3);
  EXPECT_THAT(ErrorOf({"chaos", "job", "--every_seconds=0"}), HasSubstr("is not a number > 0"));
  EXPECT_THAT(ErrorOf({"chaos", "job", "--undisturbed=-1"}),
              HasSubstr("is not a whole number >= 0"));
  EXPECT_THAT(ErrorOf({"chaos", "job", "--kills=many"}),
              HasSubstr("--kills many is not a whole number"));
}

TEST(ParseScale, TakesFieldsThatMayChange) {
  const auto scale = ParseScale({"scale", {"a", "embedding_ps.replicas=4", "epochs=2"}}, {});
  ASSERT_TRUE(scale.ok()) << scale.status();
  EXPECT_THAT(*scale, ElementsAre("a", "embedding_ps.replicas=4", "epochs=2"));
  EXPECT_EQ(ScaleErrorOf({"a"}), "usage: satrap scale RUN FIELD=N...");
  EXPECT_EQ(ScaleErrorOf({"a", "4"}),
            "'4' is not of the form FIELD=N; usage: satrap scale RUN FIELD=N...");
  EXPECT_EQ(ScaleErrorOf({"a", "run_dir=x"}),
            "run_dir=x: cannot be set here, because this command chooses the run's folder itself")
      << "as it was typed";
}

TEST(ParseCheckpoint, OfARunDiffersFromAQuestionAboutOne) {
  const auto typed = [](const std::vector<std::string>& args) {
    return ParseCheckpoint({"checkpoint", args}, {}).value();
  };
  EXPECT_EQ(typed({"runs/a"}), std::make_pair(std::string(), std::string("runs/a")));
  EXPECT_EQ(typed({"./list"}), std::make_pair(std::string(), std::string("./list")));
  EXPECT_EQ(typed({"list", "list"}), std::make_pair(std::string("list"), std::string("list")));
  EXPECT_EQ(typed({"inspect", "c"}).first, "inspect");
  EXPECT_EQ(typed({"verify", "c"}).first, "verify");
  EXPECT_EQ(CheckpointErrorOf({"verify"}),
            "usage: satrap checkpoint verify CUT; to save a cut of a run named 'verify', type: "
            "satrap checkpoint ./verify");
  EXPECT_THAT(CheckpointErrorOf({"verfy", "c"}), HasSubstr("did you mean verify?"));
  EXPECT_THAT(HelpText("checkpoint"), HasSubstr("a run of the name `list` is ./list"));
}

TEST(ParseCommandLine, HelpIsACommandAndAFlag) {
  EXPECT_EQ(ParseCommandLine({})->name, "help");
  EXPECT_EQ(ParseCommandLine({"train", "--help"})->name, "help");
  EXPECT_THAT(ParseCommandLine({"train", "--help"})->args, ElementsAre("train"));
  EXPECT_THAT(ParseCommandLine({"help", "predict"})->args, ElementsAre("predict"));
  EXPECT_THAT(HelpText("train"), HasSubstr("--init_from"));
  EXPECT_THAT(HelpText("predict"), Not(HasSubstr("--init_from")));
  EXPECT_THAT(HelpText("bench"), HasSubstr("--warmup_seconds N"));
  EXPECT_THAT(HelpText(""), HasSubstr("predict RUN FILE"));
}

TEST(ParseCommandLine, HelpIsGivenWhereverItIsAskedFor) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"train", "demo", "--set", "--help"},
                                             {"train", "--help", "--no_such_flag"},
                                             {"train", "a", "b", "c", "-h"},
                                             {"help", "train"}}) {
    const auto call = ParseCommandLine(args);
    ASSERT_TRUE(call.ok()) << call.status();
    EXPECT_EQ(call->name, "help");
    EXPECT_THAT(call->args, ElementsAre("train"));
  }
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"--help"}, {"-h"}, {"--help", "train"}, {"help"}}) {
    const auto call = ParseCommandLine(args);
    ASSERT_TRUE(call.ok()) << call.status();
    EXPECT_EQ(call->name, "help");
    EXPECT_THAT(call->args, IsEmpty());
  }
  EXPECT_THAT(ErrorOf({"trian", "--help"}), HasSubstr("did you mean train?"));
  EXPECT_THAT(ErrorOf({"help", "trian"}), HasSubstr("did you mean train?"));
}

TEST(HelpText, EveryCommandHasOneThatFitsTheTerminal) {
  for (const char* name :
       {"demo",   "train",      "validate", "evaluate", "predict", "retrieve", "status", "resume",
        "stop",   "checkpoint", "scale",    "chaos",    "bench",   "models",   "model",  "produce",
        "topics", "submit",     "list",     "logs",     "delete",  "story",    "members"}) {
    const std::string text = HelpText(name);
    EXPECT_THAT(text, HasSubstr(std::string("usage: satrap ") + name));
    EXPECT_THAT(text, Not(HasSubstr("`satrap COMMAND --help`"))) << name;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) EXPECT_LE(line.size(), 100u);
  }
}

TEST(DeepFmFlags, TakeOneSourceOfData) {
  const auto check = [](const std::vector<std::string>& args) {
    DeepFmFlags flags;
    const absl::Status status = ParseOnlyFlags(args, flags.Table());
    return status.ok() ? flags.Check() : status;
  };
  EXPECT_TRUE(check({}).ok());
  EXPECT_TRUE(check({"--from_file=day.tsv", "--wire=BF16"}).ok());
  EXPECT_TRUE(check({"--from_topic=clicks", "--brokers=b:1", "--precision", "tf32"}).ok());
  const std::vector<std::vector<std::string>> refused = {
      {"--from_topic=clicks"},
      {"--brokers=b:1"},
      {"--from_file=day.tsv", "--from_topic=clicks", "--brokers=b:1"}};
  for (const std::vector<std::string>& args : refused) {
    EXPECT_EQ(check(args).message(),
              "bench deepfm needs --brokers with --from_topic, and takes neither of them with "
              "--from_file");
  }
  EXPECT_THAT(std::string(check({"--topic=x"}).message()), HasSubstr("unknown flag --topic"));
  EXPECT_EQ(check({"--seconds=-1"}).message(), "--seconds -1 is not a number >= 0");
  EXPECT_EQ(check({"--wire=f8"}).message(), "--wire f8 is not one of f32, f16, bf16");
}

}  // namespace
}  // namespace satrap
