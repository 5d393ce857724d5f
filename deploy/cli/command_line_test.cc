#include "deploy/cli/command_line.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(const std::vector<std::string>& args) {
  const auto line = ParseCommandLine(args);
  return line.ok() ? "" : std::string(line.status().message());
}

TEST(ParseCommandLine, TheDemoTakesKafkaWithItsRateAndTime) {
  const auto line = ParseCommandLine({"demo", "--kafka", "--rate", "500", "--minutes=2"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(line->kafka);
  EXPECT_EQ(line->rate, 500);
  EXPECT_EQ(line->minutes, 2);
  EXPECT_FALSE(ParseCommandLine({"demo"})->kafka);
  EXPECT_EQ(ParseCommandLine({"demo", "--kafka=yes"}).status().message(), "--kafka takes no value");
  EXPECT_EQ(ParseCommandLine({"demo", "--rate=5"}).status().message(),
            "--rate and --minutes need --kafka");
  EXPECT_EQ(ParseCommandLine({"demo", "--kafka", "--rate=0"}).status().message(),
            "--rate 0 is not a number >= 1");
}

TEST(ParseCommandLine, CommandsOfKafkaTakeTheirArgumentsAsTyped) {
  const auto line = ParseCommandLine({"produce", "a.csv", "--topic", "T", "--rate=5"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->command, Command::kProduce);
  EXPECT_EQ(line->arguments, (std::vector<std::string>{"a.csv", "--topic", "T", "--rate=5"}));
  EXPECT_EQ(ParseCommandLine({"topics"})->command, Command::kTopics);
  EXPECT_EQ(ParseCommandLine({"topics", "--help"})->command_name, "topics");
}

TEST(ParseCommandLine, AModelIsShownWithTheShapeOfItsData) {
  const auto line = ParseCommandLine({"model", "dcnv2", "--rows=5389", "--features", "10",
                                      "--numerics=0", "--dim=10", "--dot=g.dot"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->command, Command::kModel);
  EXPECT_EQ(line->rows, 5389);
  EXPECT_EQ(line->features, 10);
  EXPECT_EQ(line->numerics, 0);
  EXPECT_EQ(line->dim, 10);
  EXPECT_EQ(line->dot, "g.dot");
  EXPECT_EQ(ParseCommandLine({"models"})->command, Command::kModels);
  EXPECT_EQ(ErrorOf({"model", "fm", "--rows=many"}),
            "--rows many is not a whole number in [1, 1099511627776]");
  EXPECT_EQ(ErrorOf({"model", "fm", "--features=0"}),
            "--features 0 is not a whole number in [1, 10000]");
  EXPECT_EQ(ErrorOf({"model"}), "usage: satrap model NAME | JOB");
}

TEST(ParseCommandLine, UnderstandsATraining) {
  const auto line = ParseCommandLine({"--install_dir=/opt/satrap", "train", "demo", "--set",
                                      "seed=7", "--set=mode=SYNC", "--report", "out.json",
                                      "--run_dir=r", "--init_from", "runs/a"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->command, Command::kTrain);
  EXPECT_EQ(line->install_dir, "/opt/satrap");
  EXPECT_THAT(line->arguments, ElementsAre("demo"));
  EXPECT_THAT(line->sets, ElementsAre("seed=7", "mode=SYNC"));
  EXPECT_EQ(line->report, "out.json");
  EXPECT_EQ(line->run_dir, "r");
  EXPECT_EQ(line->init_from, "runs/a");
}

TEST(ParseCommandLine, GivesABenchmarkItsOwnFlags) {
  const auto line =
      ParseCommandLine({"bench", "deepfm", "--mlp", "64,32", "--seconds=5", "--set", "seed=2"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->arguments, ElementsAre("deepfm"));
  EXPECT_THAT(line->bench_flags, ElementsAre("--mlp=64,32", "--seconds=5"));
  EXPECT_THAT(line->sets, ElementsAre("seed=2"));
}

TEST(ParseCommandLine, SaysWhatWasProbablyMeant) {
  EXPECT_THAT(ErrorOf({"trian", "demo"}), HasSubstr("did you mean train?"));
  EXPECT_THAT(ErrorOf({"train", "demo", "--raport=x"}), HasSubstr("did you mean --report?"));
  EXPECT_THAT(ErrorOf({"frobnicate"}), HasSubstr("'frobnicate'; commands are"));
  EXPECT_THAT(ErrorOf({"frobnicate"}), Not(HasSubstr("did you mean")));
}

TEST(ParseCommandLine, RefusesWhatDoesNotFit) {
  EXPECT_THAT(ErrorOf({"train"}), HasSubstr("usage: satrap train JOB"));
  EXPECT_THAT(ErrorOf({"train", "a", "b"}), HasSubstr("usage: satrap train JOB"));
  EXPECT_THAT(ErrorOf({"train", "a", "--set"}), HasSubstr("--set needs a value"));
  EXPECT_THAT(ErrorOf({"status", "--report=x"}), HasSubstr("'status' has no flag --report"));
}

TEST(ParseCommandLine, RefusesAnEmptyValue) {
  EXPECT_THAT(ErrorOf({"train", "a", "--report="}), HasSubstr("--report needs a value"));
  EXPECT_THAT(ErrorOf({"train", "a", "--run_dir", ""}), HasSubstr("--run_dir needs a value"));
  EXPECT_THAT(ErrorOf({"predict", "a", "b", "--output="}), HasSubstr("--output needs a value"));
}

TEST(ParseCommandLine, PredictNamesLayersInOrder) {
  const auto line = ParseCommandLine({"predict", "run", "f", "--output", "user_vector",
                                      "--output=item.embedding", "--output_file", "out"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->outputs, (std::vector<std::string>{"user_vector", "item.embedding"}));
  EXPECT_EQ(line->output_file, "out");
  EXPECT_THAT(ErrorOf({"predict", "a", "b", "--set", "predict_outputs=x"}),
              HasSubstr("use satrap predict RUN FILE --output LAYER"));
}

TEST(ParseCommandLine, PredictTakesOneFileOrMore) {
  for (const std::vector<std::string>& files :
       {std::vector<std::string>{"a"}, std::vector<std::string>{"b", "a", "c"}}) {
    std::vector<std::string> args = {"predict", "run"};
    args.insert(args.end(), files.begin(), files.end());
    args.emplace_back("--output_file=o");
    const auto line = ParseCommandLine(args);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_EQ(std::vector<std::string>(line->arguments.begin() + 1, line->arguments.end()), files);
  }
  EXPECT_THAT(ErrorOf({"predict", "run"}), HasSubstr("usage: satrap predict RUN FILE..."));
}

TEST(ParseCommandLine, RetrieveTakesItsFilesByFlags) {
  const std::vector<std::string> needed = {"retrieve", "u",      "i",          "--users", "un",
                                           "--items",  "inames", "--relevant", "held_out"};
  auto line = ParseCommandLine(needed);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->arguments, (std::vector<std::string>{"u", "i"}));
  EXPECT_EQ(line->users + " " + line->items + " " + line->relevant, "un inames held_out");
  EXPECT_EQ(line->ks, (std::vector<int>{20, 50}));
  EXPECT_FALSE(line->json);
  std::vector<std::string> all = needed;
  for (const char* flag : {"--k=5,1", "--json", "--seen=s", "--popularity=p", "--output_file=o"}) {
    all.emplace_back(flag);
  }
  line = ParseCommandLine(all);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->ks, (std::vector<int>{5, 1}));
  EXPECT_TRUE(line->json);
  EXPECT_EQ(line->seen + line->popularity + line->output_file, "spo");

  EXPECT_THAT(ErrorOf({"retrieve", "u"}), HasSubstr("usage: satrap retrieve USER_VECTORS ITEM_"));
  EXPECT_THAT(ErrorOf({"retrieve", "u", "i", "--users=a", "--relevant=b"}),
              HasSubstr("retrieve needs --items FILE; usage: satrap retrieve"));
  for (const char* k : {"0", "5,", "x", "1,99999"}) {
    all.push_back(std::string("--k=") + k);
    EXPECT_THAT(ErrorOf(all), HasSubstr(" is not a whole number in [1, 10000]")) << k;
    all.pop_back();
  }
  all.emplace_back("--json=1");
  EXPECT_THAT(ErrorOf(all), HasSubstr("--json takes no value"));
}

TEST(ParseCommandLine, RefusesToSetWhatTheCommandSets) {
  EXPECT_THAT(ErrorOf({"train", "a", "--set", "run_dir=x"}), HasSubstr("use --run_dir DIR"));
  EXPECT_THAT(ErrorOf({"bench", "deepfm", "--set", "run_dir=x"}), Not(HasSubstr("--run_dir DIR")));
  EXPECT_THAT(ErrorOf({"train", "a", "--set", "action=EVALUATE"}),
              HasSubstr("satrap evaluate RUN"));
  EXPECT_EQ(ErrorOf({"train", "a", "--set", "data.test_files="}), "");
}

TEST(ParseCommandLine, UnderstandsTheCommandsOfARunInProgress) {
  const auto resume = ParseCommandLine(
      {"resume", "runs/a", "--from", "cut_0001_000002", "--set", "epochs=3", "--report=r"});
  ASSERT_TRUE(resume.ok()) << resume.status();
  EXPECT_EQ(resume->command, Command::kResume);
  EXPECT_EQ(resume->from_cut, "cut_0001_000002");
  EXPECT_THAT(resume->sets, ElementsAre("epochs=3"));
  EXPECT_EQ(ParseCommandLine({"stop", "runs/a"})->command, Command::kStop);
  const auto scale = ParseCommandLine({"scale", "a", "embedding_ps.replicas=4", "epochs=2"});
  ASSERT_TRUE(scale.ok()) << scale.status();
  EXPECT_THAT(scale->arguments, ElementsAre("a", "embedding_ps.replicas=4", "epochs=2"));
  EXPECT_THAT(ErrorOf({"scale", "a"}), HasSubstr("usage: satrap scale RUN FIELD=N..."));
  EXPECT_THAT(ErrorOf({"scale", "a", "4"}), HasSubstr("'4' is not of the form FIELD=N"));
  EXPECT_THAT(ErrorOf({"scale", "a", "run_dir=x"}), HasSubstr("this command chooses the folder"));
  EXPECT_THAT(ErrorOf({"stop"}), HasSubstr("usage: satrap stop RUN"));
  const auto chaos = ParseCommandLine({"chaos", "job", "--kills", "7", "--seed=9"});
  ASSERT_TRUE(chaos.ok()) << chaos.status();
  EXPECT_EQ(chaos->kills, 7);
  EXPECT_EQ(chaos->seed, 9u);
  const auto random =
      ParseCommandLine({"chaos", "job", "--every_seconds", "2.5", "--undisturbed=3"});
  ASSERT_TRUE(random.ok()) << random.status();
  EXPECT_EQ(random->every_seconds, 2.5);
  EXPECT_EQ(random->undisturbed, 3);
  EXPECT_THAT(ErrorOf({"chaos", "job", "--every_seconds=0"}), HasSubstr("is not a number > 0"));
  EXPECT_THAT(ErrorOf({"chaos", "job", "--undisturbed=-1"}), HasSubstr("is not a number >= 0"));
  EXPECT_THAT(ErrorOf({"chaos", "job", "--kills=many"}), HasSubstr("--kills many is not a number"));
}

TEST(ParseCommandLine, ACheckpointOfARunDiffersFromAQuestionAboutOne) {
  EXPECT_EQ(ParseCommandLine({"checkpoint", "runs/a"})->command, Command::kCheckpoint);
  EXPECT_EQ(ParseCommandLine({"checkpoint", "./list"})->command, Command::kCheckpoint);
  const auto list = ParseCommandLine({"checkpoint", "list", "list"});
  EXPECT_EQ(list->command, Command::kCheckpointList);
  EXPECT_THAT(list->arguments, ElementsAre("list"));
  EXPECT_EQ(ParseCommandLine({"checkpoint", "inspect", "c"})->command, Command::kCheckpointInspect);
  EXPECT_EQ(ParseCommandLine({"checkpoint", "verify", "c"})->command, Command::kCheckpointVerify);
  EXPECT_THAT(ErrorOf({"checkpoint", "verify"}),
              HasSubstr("usage: satrap checkpoint verify CUT; a cut of a run named 'verify' is "
                        "taken by: satrap checkpoint ./verify"));
  EXPECT_THAT(ErrorOf({"checkpoint", "verfy", "c"}), HasSubstr("did you mean verify?"));
  EXPECT_THAT(HelpText("checkpoint"), HasSubstr("a run of the name `list` is ./list"));
}

TEST(ParseCommandLine, HelpIsACommandAndAFlag) {
  EXPECT_EQ(ParseCommandLine({})->command, Command::kHelp);
  EXPECT_EQ(ParseCommandLine({"train", "--help"})->command, Command::kHelp);
  EXPECT_EQ(ParseCommandLine({"train", "--help"})->command_name, "train");
  EXPECT_EQ(ParseCommandLine({"help", "predict"})->command_name, "predict");
  EXPECT_THAT(HelpText("train"), HasSubstr("--init_from"));
  EXPECT_THAT(HelpText("predict"), Not(HasSubstr("--init_from")));
  EXPECT_THAT(HelpText(""), HasSubstr("predict RUN FILE"));
}

TEST(ParseCommandLine, HelpIsGivenWhereverItIsAskedFor) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"train", "demo", "--set", "--help"},
                                             {"train", "--help", "--no_such_flag"},
                                             {"train", "a", "b", "c", "-h"},
                                             {"help", "train"}}) {
    const auto line = ParseCommandLine(args);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_EQ(line->command, Command::kHelp);
    EXPECT_EQ(line->command_name, "train");
  }
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"--help"}, {"-h"}, {"--help", "train"}, {"help"}}) {
    const auto line = ParseCommandLine(args);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_EQ(line->command, Command::kHelp);
    EXPECT_EQ(line->command_name, "");
  }
  EXPECT_THAT(ErrorOf({"trian", "--help"}), HasSubstr("did you mean train?"));
  EXPECT_THAT(ErrorOf({"help", "trian"}), HasSubstr("did you mean train?"));
}

TEST(ParseCommandLine, EveryCommandHasAHelpText) {
  for (const char* name : {"demo", "train", "validate", "evaluate", "predict", "status", "resume",
                           "stop", "checkpoint", "scale", "chaos", "bench"}) {
    EXPECT_THAT(HelpText(name), HasSubstr(std::string("usage: satrap ") + name));
    EXPECT_THAT(HelpText(name), Not(HasSubstr("`satrap COMMAND --help`"))) << name;
  }
}

TEST(ParseCommandLine, ScaleSpeaksOfFieldsAsTheyWereTyped) {
  EXPECT_EQ(ErrorOf({"scale", "a", "run_dir=x"}), "run_dir=x: this command chooses the folder");
}

}  // namespace
}  // namespace satrap
