// Tests whole runs with a process for every role: training in both modes, then evaluate, predict
// and status.

#include <signal.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kCsvJob[] = R"(
  name: "csv"
  global_batch_size: 64
  epochs: 3
  data {
    csv { columns { name: "label" kind: LABEL } columns { name: "word" kind: ID } }
    train_files: "train.csv"
    valid_files: "train.csv"
    features { name: "word" table: "words" }
  }
  tables {
    name: "words"
    id: 0
    segments { name: "linear" dim: 1 optimizer { learning_rate: 0.1 adagrad {} } }
  }
  model { layers { name: "logit" inputs: "*.linear" sum {} } }
)";

// The fraction of (positive, negative) pairs that the scores rank correctly; ties count half.
double AucOf(const std::vector<double>& scores, const std::vector<int>& labels) {
  double pairs = 0;
  double in_order = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (labels[i] == 0 || labels[j] == 1) continue;
      pairs += 1;
      in_order += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  }
  return in_order / pairs;
}

class TrainTest : public RunFixture {
 protected:
  // Trains and returns the report.
  std::string Train(const std::string& job, const std::string& run,
                    const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = {"train",   job,        "--run_dir",
                                     Path(run), "--report", Path(run + ".json")};
    args.insert(args.end(), more.begin(), more.end());
    const CommandEnd end = Satrap(args);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_TRUE(RoleProcesses(Path(run)).empty());
    EXPECT_FALSE(fs::exists(Path(run + "/sockets"))) << "the folder of sockets is removed";
    const std::string report = ReadFile(Path(run + ".json"));
    EXPECT_EQ(report, ReadFile(Path(run + "/report.json")));
    EXPECT_THAT(end.out, HasSubstr("\nmodel        ")) << "and nothing but the report";
    EXPECT_EQ(end.out, ReadFile(Path(run + "/report.txt")));
    return report;
  }
};

TEST_F(TrainTest, BothModesLearnFromEverySampleOnce) {
  const std::string job = WriteJob(20000);
  for (const std::string mode : {"HYBRID", "SYNC"}) {
    const std::string report = Train(job, mode, {"--set", "mode=" + mode});
    EXPECT_EQ(JsonNumber(report, "samples"), 20000) << mode;
    EXPECT_EQ(JsonNumber(report, "test.samples"), 4000);
    EXPECT_EQ(JsonNumber(report, "valid.samples"), 2000);
    EXPECT_EQ(JsonNumber(report, "quarantined"), 0);
    EXPECT_GT(JsonNumber(report, "test.auc"), 0.6) << mode;
    EXPECT_LT(JsonNumber(report, "test.auc"), JsonNumber(report, "bayes_auc") + 0.01);
    EXPECT_EQ(JsonNumber(report, "tables.rows"), 19 + 19 + 99)
        << "every id was seen but the last of each vocabulary, which has no weight";
    EXPECT_GT(JsonNumber(report, "samples_per_second"), 0);
    EXPECT_GE(JsonNumber(report, "wall_seconds"), JsonNumber(report, "train_seconds"));
  }
}

TEST_F(TrainTest, WhereStdoutIsForAProgramTheReportForPeopleGoesToStderr) {
  const CommandEnd end =
      Satrap({"train", WriteJob(2000), "--run_dir", Path("run"), "--report", "/dev/stdout"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.out, ReadFile(Path("run/report.json")));
  EXPECT_THAT(end.err, HasSubstr(ReadFile(Path("run/report.txt"))));
}

// Like `satrap train JOB 2>&1 | head -1`: the reader has exited when the second line comes.
TEST_F(TrainTest, ARunWhoseProgressNobodyReadsAnyMoreTrainsOnToItsEnd) {
  const Command command = StartProgram({"bash", "-c", R"(set -o pipefail; "$@" 2>&1 | head -n 1)",
                                        "bash", ProgramPath("deploy/satrap_cli"), "--install_dir=.",
                                        "train", WriteJob(20000), "--run_dir", Path("run")});
  const CommandEnd end = WaitFor(command);
  EXPECT_EQ(end.exit_code, 0) << end.out;
  EXPECT_THAT(end.out, HasSubstr("runs in " + Path("run")));
  EXPECT_EQ(JsonNumber(ReadFile(Path("run/report.json")), "samples"), 20000);
  EXPECT_TRUE(RoleProcesses(Path("run")).empty());
}

TEST_F(TrainTest, AReproducibleRunHasTheSameBitsWithAnyNumberOfServices) {
  const std::string job = WriteJob(10000, "mode: SYNC reproducible: true");
  const auto digest_of = [&](const std::string& run, const std::vector<std::string>& sets) {
    std::vector<std::string> more;
    for (const std::string& assignment : sets) {
      more.push_back("--set");
      more.push_back(assignment);
    }
    const std::string report = Train(job, run, more);
    EXPECT_EQ(JsonNumber(report, "samples"), 10000);
    const std::string name = R"("model_digest":")";
    EXPECT_NE(report.find(name), std::string::npos) << report;
    return report.substr(report.find(name) + name.size(), 16);
  };
  const std::string first = digest_of("first", {});
  EXPECT_NE(first, std::string(16, '0'));
  EXPECT_EQ(digest_of("ps", {"embedding_ps.replicas=4"}), first);
  EXPECT_EQ(digest_of("worker", {"embedding_worker.replicas=1"}), first);
  EXPECT_EQ(digest_of("loader", {"data_loader.replicas=2"}), first);
  EXPECT_NE(digest_of("seed", {"seed=2"}), first);
}

// The same records three times: without quotes, with every field quoted, and with a line end in a
// field that is not used.
TEST_F(TrainTest, AQuotedFileTrainsToTheBitsOfTheSameFileWithoutQuotes) {
  std::string plain = "label,note,word\n";
  std::string quoted = "\xef\xbb\xbf\"label\",\"note\",\"word\"\r\n";
  std::string spanning = plain;
  for (int i = 0; i < 3000; ++i) {
    const int word = i * 7 % 50;
    const int label = (i * 31 + i / 50) % 60 < word ? 1 : 0;
    absl::StrAppend(&plain, label, ",x,w", word, "\n");
    absl::StrAppend(&quoted, "\"", label, "\",\"a, \"\"b\"\"\",\"w", word, "\"\r\n");
    absl::StrAppend(&spanning, label, ",\"a\nb\",w", word, "\n");
  }
  std::string text = kCsvJob;
  const std::string columns = R"(csv { columns { name: "label" kind: LABEL } )";
  ASSERT_NE(text.find(columns), std::string::npos);
  text.replace(
      text.find(columns), columns.size(),
      R"(csv { header: true columns { name: "label" kind: LABEL } columns { name: "note" } )");
  const std::string job = WriteFile("csv.textproto", text);
  const auto digest_of = [&](const std::string& run, const std::string& rows,
                             const std::string& multiline) {
    WriteFile("train.csv", rows);
    const std::string report =
        Train(job, run,
              {"--set", "data_root=" + dir_, "--set", "mode=SYNC", "--set", "reproducible=true",
               "--set", "data.csv.multiline=" + multiline});
    EXPECT_EQ(JsonNumber(report, "samples"), 9000);
    EXPECT_EQ(JsonNumber(report, "quarantined"), 0);
    const std::string name = R"("model_digest":")";
    EXPECT_NE(report.find(name), std::string::npos) << report;
    return report.substr(report.find(name) + name.size(), 16);
  };
  const std::string digest = digest_of("plain", plain, "false");
  EXPECT_NE(digest, std::string(16, '0'));
  EXPECT_EQ(digest_of("quoted", quoted, "false"), digest);
  EXPECT_EQ(digest_of("spanning", spanning, "true"), digest);
}

TEST_F(TrainTest, ASavedModelIsEvaluatedAndPredictsTheSame) {
  const std::string job = WriteJob(20000);
  const std::string trained = Train(job, "run");
  const CommandEnd evaluated = Satrap({"evaluate", Path("run"), "--run_dir", Path("evaluation"),
                                       "--report", Path("evaluation.json")});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const std::string report = ReadFile(Path("evaluation.json"));
  EXPECT_NEAR(JsonNumber(report, "test.auc"), JsonNumber(trained, "test.auc"), 1e-12);
  EXPECT_NEAR(JsonNumber(report, "test.logloss"), JsonNumber(trained, "test.logloss"), 1e-9);
}

TEST_F(TrainTest, AModelSavedBeforeAKillIsWhole) {
  const std::string job = WriteJob(20000, "epochs: 100000");
  const Command command = StartSatrap({"train", job, "--run_dir", Path("run")});
  ASSERT_TRUE(WaitUntil([&] { return fs::exists(Path("run/checkpoints/best")); }, 60));
  SendSignal(command.pid, SIGKILL);
  WaitFor(command, 60);
  const CommandEnd evaluated = Satrap(
      {"evaluate", Path("run"), "--run_dir", Path("evaluation"), "--report", Path("e.json")});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_GT(JsonNumber(ReadFile(Path("e.json")), "test.auc"), 0.6);
  const CommandEnd continued =
      Satrap({"train", job, "--init_from", Path("run"), "--set", "epochs=1", "--run_dir",
              Path("continued"), "--report", Path("c.json")});
  EXPECT_EQ(continued.exit_code, 0) << continued.err;
  EXPECT_GT(JsonNumber(ReadFile(Path("c.json")), "test.auc"), 0.6);
}

TEST_F(TrainTest, PredictRefusesWhatItCannotScore) {
  const std::string job = WriteJob(2000);
  Train(job, "run");
  const CommandEnd missing = Satrap({"predict", Path("run"), Path("nothing.csv")});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("nothing.csv"));
  const CommandEnd synthetic = Satrap({"predict", Path("run"), WriteFile("rows.csv", "0,a\n")});
  EXPECT_EQ(synthetic.exit_code, 1);
  EXPECT_THAT(synthetic.err, HasSubstr("synthetic"));
  EXPECT_EQ(synthetic.out, "");
}

TEST_F(TrainTest, TrainingOnNothingIsAnError) {
  WriteFile("train.csv", "");
  const std::string job = WriteFile("csv.textproto", kCsvJob);
  const CommandEnd end = Satrap({"train", job, "--set", "data_root=" + dir_, "--set",
                                 "data.valid_files=", "--run_dir", Path("run")});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, HasSubstr("no training samples"));
  EXPECT_FALSE(fs::exists(Path("run/checkpoints/best")));
  EXPECT_FALSE(fs::exists(Path("run/report.json")));
}

TEST_F(TrainTest, PredictionsHaveTheAucThatEvaluateReports) {
  std::string rows;
  std::vector<int> labels;
  // Each word has positive and negative samples, in a proportion of its own.
  for (int i = 0; i < 3000; ++i) {
    const int word = i * 7 % 50;
    labels.push_back((i * 31 + i / 50) % 60 < word ? 1 : 0);
    absl::StrAppend(&rows, labels.back(), ",w", word, "\n");
  }
  WriteFile("train.csv", rows);
  const std::string job = WriteFile("csv.textproto", kCsvJob);
  Train(job, "run", {"--set", "data_root=" + dir_});
  const CommandEnd evaluated =
      Satrap({"evaluate", Path("run"), "--set", "data.test_files=train.csv", "--run_dir",
              Path("evaluation"), "--report", Path("e.json")});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const CommandEnd predicted =
      Satrap({"predict", Path("run"), Path("train.csv"), "--run_dir", Path("prediction")});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  std::vector<double> scores;
  for (const auto line : absl::StrSplit(predicted.out, '\n', absl::SkipEmpty())) {
    scores.emplace_back();
    ASSERT_TRUE(absl::SimpleAtod(line, &scores.back()));
  }
  ASSERT_EQ(scores.size(), labels.size());
  const double auc = AucOf(scores, labels);
  EXPECT_GT(auc, 0.6);
  EXPECT_LT(auc, 0.99);
  EXPECT_NEAR(JsonNumber(ReadFile(Path("e.json")), "test.auc"), auc, 1e-6);
}

TEST_F(TrainTest, PredictWritesOneProbabilityARecordInOrder) {
  std::string train;
  for (int i = 0; i < 4000; ++i) absl::StrAppend(&train, i % 2, ",", i % 2 == 1 ? "a" : "b", "\n");
  WriteFile("train.csv", train);
  WriteFile("score.csv", "0,b\n1,a\n0,b\nnonsense\n1,b\n");
  const std::string job = WriteFile("csv.textproto", kCsvJob);
  Train(job, "run", {"--set", "data_root=" + dir_});
  const CommandEnd end =
      Satrap({"predict", Path("run"), Path("score.csv"), "--run_dir", Path("prediction")});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const std::vector<std::string> lines = absl::StrSplit(end.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 5u) << end.out;
  std::vector<double> scores(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) ASSERT_TRUE(absl::SimpleAtod(lines[i], &scores[i]));
  EXPECT_LT(scores[0], 0.4);
  EXPECT_GT(scores[1], 0.6);
  EXPECT_EQ(scores[2], scores[0]);
  EXPECT_EQ(lines[3], "nan");
  EXPECT_EQ(scores[4], scores[0]) << "the label plays no part";
  // By name this file comes after the other one, but the command line names it first.
  const std::string first = WriteFile("z.csv", "1,a\n0,b\n");
  const CommandEnd both = Satrap(
      {"predict", Path("run"), first, Path("score.csv"), "--run_dir", Path("predictions of two")});
  EXPECT_EQ(both.out, absl::StrCat(lines[1], "\n", lines[0], "\n", end.out)) << both.err;
  const CommandEnd twice = Satrap({"predict", Path("run"), first, first});
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_THAT(twice.err, HasSubstr("twice: name each file once"));
  EXPECT_THAT(end.err, HasSubstr("1 bad record has the line nan"));
}

// Two towers, one for users and one for items, whose product is the logit.
constexpr char kTowers[] = R"(
    name: "towers"
    global_batch_size: 64
    epochs: 4
    data {
      csv { columns { name: "label" kind: LABEL } columns { name: "user" kind: ID } columns { name: "item" kind: ID } }
      train_files: "train.csv"
      features { name: "user" table: "ids" }
      features { name: "item" table: "ids" }
    }
    tables { id: 0 name: "ids" segments { name: "embedding" dim: 4 initializer { normal { stddev: 0.5 } }
                                          optimizer { learning_rate: 0.1 adagrad {} } } }
    model {
      layers { name: "user_vector" inputs: "user.embedding" mlp { units: 8 output_units: 3 } }
      layers { name: "item_vector" inputs: "item.embedding" mlp { units: 8 output_units: 3 } }
      layers { name: "logit" inputs: [ "user_vector", "item_vector" ] inner_product {} }
    }
    nn_worker { replicas: 2 })";
constexpr int kUsers = 20, kItems = 30;

// The pairs of users and items that are trained, a line each: as `train.csv` has them, or as
// `retrieve --seen` takes them. A user likes the items of the user's own half.
std::string TrainedPairs(bool as_csv) {
  std::string lines;
  for (int i = 0; i < 6000; ++i) {
    const int user = i % kUsers, item = i / kUsers % kItems;
    if (user < 2 && item < 4) continue;  // held out
    if (as_csv) absl::StrAppend(&lines, user % 2 == item % 2 ? 1 : 0, ",u", user, ",i", item, "\n");
    if (!as_csv) absl::StrAppend(&lines, "u", user, "\ti", item, "\n");
  }
  return lines;
}

// The numbers below `count`, each in a line of its own between `before` and `after`.
std::string NumberedLines(const std::string& before, int count, const std::string& after) {
  std::string lines;
  for (int i = 0; i < count; ++i) absl::StrAppend(&lines, before, i, after, "\n");
  return lines;
}

// The vectors of the two towers must rank the items of the user's own half first.
TEST_F(TrainTest, VectorsThatPredictWritesAreRankedByRetrieve) {
  WriteFile("train.csv", TrainedPairs(/*as_csv=*/true));
  Train(WriteFile("towers.textproto", kTowers), "run", {"--set", "data_root=" + dir_});

  const CommandEnd unknown =
      Satrap({"predict", Path("run"), WriteFile("items.csv", NumberedLines("1,u0,i", kItems, "")),
              "--output", "item_vectr", "--run_dir", Path("p0")});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err,
              HasSubstr("the model has no layer \"item_vectr\"; it has user_vector, "));
  EXPECT_FALSE(fs::exists(Path("p0"))) << "nothing was started";

  ASSERT_EQ(Satrap({"predict", Path("run"), Path("items.csv"), "--output", "item_vector",
                    "--output_file", Path("item_vectors"), "--run_dir", Path("p1")})
                .exit_code,
            0);
  const CommandEnd user_vectors =
      Satrap({"predict", Path("run"),
              WriteFile("users.csv", NumberedLines("1,u", kUsers, ",i0") + "broken\n"), "--output",
              "user_vector", "--run_dir", Path("p2")});
  ASSERT_EQ(user_vectors.exit_code, 0) << user_vectors.err;
  EXPECT_THAT(user_vectors.out, ::testing::EndsWith("nan\tnan\tnan\n"));
  WriteFile("user_vectors", user_vectors.out);
  // The outputs of a record are printed one after another. Inputs of the model may be outputs, too.
  const CommandEnd both =
      Satrap({"predict", Path("run"), Path("users.csv"), "--output", "user.embedding", "--output",
              "user_vector", "--run_dir", Path("p3")});
  ASSERT_EQ(both.exit_code, 0) << both.err;
  const std::vector<std::string> first =
      absl::StrSplit(both.out.substr(0, both.out.find('\n')), '\t');
  ASSERT_EQ(first.size(), 7u);
  EXPECT_EQ(first[4] + "\t" + first[5] + "\t" + first[6],
            user_vectors.out.substr(0, user_vectors.out.find('\n')));

  WriteFile("user_names", NumberedLines("u", kUsers, "") + "broken\n");
  WriteFile("item_names", NumberedLines("i", kItems, ""));
  WriteFile("seen", TrainedPairs(/*as_csv=*/false));
  WriteFile("relevant", "u0\ti0\nu0\ti2\nu1\ti1\nu1\ti3\n");
  std::vector<std::string> retrieve = {"retrieve",
                                       Path("user_vectors"),
                                       Path("item_vectors"),
                                       "--users=" + Path("user_names"),
                                       "--items=" + Path("item_names"),
                                       "--relevant=" + Path("relevant"),
                                       "--seen=" + Path("seen"),
                                       "--popularity=" + Path("seen"),
                                       "--k=2,4"};
  const CommandEnd table = Satrap(retrieve);
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("2 users with relevant items, 30 items, 3 values a vector\n"));
  EXPECT_THAT(table.out, HasSubstr("vectors         2   1.00000   1.00000   1.00000   1.00000\n"));
  EXPECT_THAT(table.out, HasSubstr("popularity      4 "));
  retrieve.insert(retrieve.end(), {"--json", "--output_file", Path("top")});
  EXPECT_THAT(Satrap(retrieve).out, HasSubstr(R"({"ranking":"vectors","k":2,"recall":1,)"));
  EXPECT_THAT(ReadFile(Path("top")), ::testing::MatchesRegex("u0\ti[02]\ti[02]\t(.|\n)*"));
  const CommandEnd missing = Satrap({"retrieve", Path("user_vectors"), Path("item_vectors")});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("--users is missing; give --users FILE"));
}

TEST_F(TrainTest, StatusTellsOfARunThatRunsAndOfOneThatHasEnded) {
  const std::string job = WriteJob(20000);
  const Command command =
      StartSatrap({"train", job, "--set", "epochs=100000", "--run_dir", Path("run")});
  ASSERT_TRUE(WaitUntilTraining(Path("run")));
  const CommandEnd running = Satrap({"status", Path("run")});
  EXPECT_EQ(running.exit_code, 0);
  EXPECT_THAT(running.out, HasSubstr("generation 1, for "));
  EXPECT_THAT(running.out, HasSubstr("RUNNING"));
  EXPECT_THAT(running.out, HasSubstr("cuts: "));
  EXPECT_THAT(running.out, HasSubstr("nn_worker 1"));
  EXPECT_THAT(running.out, HasSubstr("metrics at http://127.0.0.1:"));
  SendSignal(command.pid, SIGINT);
  const CommandEnd stopped = WaitFor(command, 60);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("no work is lost; `satrap resume "));
  EXPECT_TRUE(RoleProcesses(Path("run")).empty());
  const CommandEnd ended = Satrap({"status", Path("run")});
  EXPECT_THAT(ended.out, HasSubstr(" was stopped: stopped on request"));
  EXPECT_THAT(ended.out, HasSubstr("`satrap resume " + Path("run") + "` continues from step "));
}

TEST_F(TrainTest, CutsOfARunAreTakenListedInspectedAndVerified) {
  const std::string job = WriteJob(20000);
  const Command command =
      StartSatrap({"train", job, "--set", "epochs=100000", "--run_dir", Path("run")});
  ASSERT_TRUE(WaitUntilTraining(Path("run")));
  const CommandEnd taken = Satrap({"checkpoint", Path("run")});
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr(Path("run/checkpoints/cut_0001_")));
  const CommandEnd stop = Satrap({"stop", Path("run")});
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  EXPECT_THAT(stop.out, HasSubstr("has stopped; no work is lost; `satrap resume "));
  EXPECT_EQ(WaitFor(command, 60).exit_code, 0);
  EXPECT_THAT(Satrap({"checkpoint", "list", Path("run")}).out, HasSubstr("latest stop\n"));
  const CommandEnd inspected = Satrap({"checkpoint", "inspect", Path("run/checkpoints/latest")});
  EXPECT_THAT(inspected.out, HasSubstr("embedding dim 4 adagrad, linear dim 1 adagrad"));
  EXPECT_EQ(Satrap({"checkpoint", "verify", Path("run")}).exit_code, 0);
  EXPECT_EQ(Satrap({"checkpoint", Path("run")}).exit_code, 1) << "nothing runs";
  // A max_steps that the run has passed is refused, because it would end the run for good. The
  // error names the run's step.
  const CommandEnd refused = Satrap({"resume", Path("run"), "--set", "max_steps=1"});
  EXPECT_EQ(refused.exit_code, 1);
  const std::string least = "max_steps: must be at least ";
  ASSERT_THAT(refused.err, HasSubstr(least));
  const int step = std::atoi(refused.err.substr(refused.err.find(least) + least.size()).c_str());
  const CommandEnd resumed =
      Satrap({"resume", Path("run"), "--set", absl::StrCat("max_steps=", step + 9), "--report",
              Path("resumed.json")});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(JsonNumber(ReadFile(Path("resumed.json")), "generations"), 2);
}

// A file of 9,000 records, more than a block, with words in irregular order, some bad records, and
// empty lines in between.
TEST_F(TrainTest, LineIOfThePredictionsIsAboutRecordIOfADamagedFile) {
  std::string train;
  for (int i = 0; i < 4000; ++i) absl::StrAppend(&train, i % 2, ",", i % 2 == 1 ? "a" : "b", "\n");
  WriteFile("train.csv", train);
  const std::string job = WriteFile("csv.textproto", kCsvJob);
  Train(job, "run", {"--set", "data_root=" + dir_});

  std::string text;
  std::string expected;  // a letter for each record: its word, or '-'
  for (int good = 0; good < 9000; ++good) {
    const int bad = good == 0 || good == 8192 ? 2 : good % 97 == 0 ? 1 : good == 4000 ? 50 : 0;
    for (int i = 0; i < bad; ++i) absl::StrAppend(&text, i % 2 == 0 ? "nonsense\n" : "7,a\n");
    expected.append(static_cast<size_t>(bad), '-');
    if (good % 11 == 0) text += "\n";
    expected += good * good % 10007 % 13 < 5 ? 'a' : 'b';
    absl::StrAppend(&text, "0,", expected.substr(expected.size() - 1), "\n");
  }
  text += "nonsense\n7,a";
  expected += "--";

  int num_predictions = 0;
  const auto predicted = [&](const std::string& file, const std::vector<std::string>& sets) {
    std::vector<std::string> args = {"predict", Path("run"), file};
    for (const std::string& assignment : sets) args.insert(args.end(), {"--set", assignment});
    const std::string run_dir = Path(absl::StrCat("prediction", num_predictions++));
    args.insert(args.end(), {"--run_dir", run_dir});
    const CommandEnd end = Satrap(args);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    std::string letters;
    for (const auto line : absl::StrSplit(end.out, '\n', absl::SkipEmpty())) {
      double score = 0;
      EXPECT_TRUE(absl::SimpleAtod(line, &score)) << line;
      letters += line == "nan" ? '-' : score > 0.5 ? 'a' : 'b';
    }
    return letters;
  };
  EXPECT_EQ(predicted(WriteFile("score.csv", text), {}), expected);
  EXPECT_EQ(predicted(Path("score.csv"), {"data.split_bytes=1000", "data_loader.replicas=3",
                                          "data_loader.threads=2", "nn_worker.replicas=2"}),
            expected);
  // Names that would also match other files if they were read as globs.
  const std::string compressed = Path("score[1]*.csv");
  WriteFile("score1.csv", "0,a\n");
  const gzFile file = gzopen(compressed.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
  EXPECT_EQ(predicted(compressed, {"data_loader.replicas=2"}), expected);
  const std::string bad_only = WriteFile("bad?.csv", "nonsense\n\nnonsense\n7,a\n");
  EXPECT_EQ(predicted(bad_only, {"data.max_bad_fraction=1", "data.split_bytes=10"}), "---");
  const CommandEnd list = Satrap({"predict", Path("run"), WriteFile("score1.csv,bad.csv", text)});
  EXPECT_EQ(list.exit_code, 1);
  EXPECT_THAT(list.err, HasSubstr("the path has a comma"));
}

}  // namespace
}  // namespace satrap
