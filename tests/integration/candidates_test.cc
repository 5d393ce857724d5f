// Tests whole runs with losses that use candidates: that the list is counted or read, that draws do
// not depend on the number of NN workers in SYNC, that a restart draws the same candidates, and
// that every loss learns.

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

constexpr char kData[] = R"(
  name: "retrieval"
  mode: SYNC
  reproducible: true
  global_batch_size: 64
  data {
    csv {
      separator: "\t"
      columns { name: "user" kind: ID } columns { name: "item" kind: ID }
      columns { name: "label" kind: LABEL }
    }
    train_files: "train.tsv"
    features { name: "user" table: "users" }
    features { name: "item" table: "items" }
  }
  tables {
    name: "users" id: 0
    segments { name: "embedding" dim: 4 optimizer { learning_rate: 0.1 adagrad {} } }
  }
  tables {
    name: "items" id: 1
    segments { name: "embedding" dim: 4 optimizer { learning_rate: 0.1 adagrad {} } }
  }
  model {
    layers { name: "user_vector" inputs: "user.embedding" linear { units: 4 } }
)";
constexpr char kSampled[] = R"(
    layers { name: "scores" inputs: "user_vector" inputs: "item.embedding"
             inputs: "candidates.embedding" candidate_logits { scale: 5 normalize: true } }
    tasks { name: "next" output: "scores" loss: SAMPLED_SOFTMAX }
    candidates { feature: "item" count: 20 }
  }
)";
constexpr char kInBatch[] = R"(
    layers { name: "scores" inputs: "user_vector" inputs: "item.embedding"
             in_batch_logits { scale: 5 } }
    tasks { name: "next" output: "scores" loss: IN_BATCH_SOFTMAX }
    candidates { feature: "item" sampler: FIXED_UNIGRAM distortion: 1 }
  }
)";

class CandidatesTest : public RunFixture {
 protected:
  // Each of 50 users takes the items of one group of five items; there are ten groups.
  void WriteTrainData(int records = 4000) {
    std::string text;
    for (int i = 0; i < records; ++i) {
      const int user = i % 50;
      absl::StrAppend(&text, "u", user, "\ti", user % 10 * 5 + i * 7 / 50 % 5, "\t1\n");
    }
    WriteFile("train.tsv", text);
  }
  std::string WriteRetrievalJob(const std::string& head) {
    return WriteFile("retrieval.textproto", std::string(kData) + head);
  }
  CommandEnd RunTraining(const std::string& job, const std::string& run,
                         const std::vector<std::string>& sets) {
    std::vector<std::string> args = {"train",   job,     "--run_dir",
                                     Path(run), "--set", "data_root=" + dir_};
    for (const std::string& assignment : sets) {
      args.push_back("--set");
      args.push_back(assignment);
    }
    return Satrap(args);
  }
  std::string Train(const std::string& job, const std::string& run,
                    const std::vector<std::string>& sets = {}) {
    const CommandEnd end = RunTraining(job, run, sets);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return ReadFile(Path(run + "/report.json"));
  }
  static std::string DigestOf(const std::string& report) {
    const std::string name = R"("model_digest":")";
    EXPECT_NE(report.find(name), std::string::npos) << report;
    return report.substr(report.find(name) + name.size(), 16);
  }
};

// No value changes, and SGD keeps no state, so the digest shows only which rows exist: those of the
// items that were drawn, almost none of which are in the data.
TEST_F(CandidatesTest, InSyncTheDrawsDoNotDependOnTheNumberOfNnWorkers) {
  WriteTrainData();
  std::string items;
  for (int i = 0; i < 50000; ++i) absl::StrAppend(&items, "i", i, "\n");
  WriteFile("items.txt", items);
  const std::string job = WriteRetrievalJob(absl::StrCat(
      kSampled, "dense_optimizer { sgd {} parameters { pattern: '*' frozen: true } }"));
  const std::vector<std::string> sets = {"model.candidates.list=items.txt",
                                         "model.candidates.sampler=UNIFORM",
                                         "tables[0].frozen=true", "tables[1].frozen=true"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> all = sets;
    all.push_back(more);
    return all;
  };
  const std::string one = Train(job, "one", with("nn_worker.replicas=1"));
  const std::string two = Train(job, "two", with("nn_worker.replicas=2"));
  EXPECT_EQ(DigestOf(one), DigestOf(two));
  // The number of rows in the table of the items.
  EXPECT_GT(JsonNumber(one, "tables.rows.rows"), 1200) << "20 of 50,000 for each of 63 batches";
  EXPECT_NE(DigestOf(Train(job, "seed", with("seed=2"))), DigestOf(one));
}

TEST_F(CandidatesTest, AReproducibleRunHasTheSameBitsWithAnyNumberOfServices) {
  WriteTrainData();
  const std::string job = WriteRetrievalJob(kSampled);
  const std::string first = DigestOf(Train(job, "first"));
  EXPECT_EQ(DigestOf(Train(job, "services",
                           {"embedding_ps.replicas=3", "embedding_worker.replicas=2",
                            "data_loader.replicas=2", "lanes=2"})),
            DigestOf(Train(job, "lanes", {"lanes=2"})));
  // A run that continues after a kill reads its own list again, even if the user's file has changed
  // or is gone.
  const std::string killed = WriteRetrievalJob(
      absl::StrCat(kSampled, "kill_points { point: WORKER_AFTER_UPDATE visit: 40 } ",
                   "checkpoint { every_steps: 10 }"));
  EXPECT_EQ(DigestOf(Train(killed, "killed")), first);
}

TEST_F(CandidatesTest, EveryLossLearnsInBothModes) {
  WriteTrainData(20000);
  struct Case {
    const char* name;
    const char* head;
    std::vector<std::string> sets;
    double margin = 2;  // between the mean scores of taken items and of others
  };
  const Case cases[] = {
      {"sampled", kSampled, {}},
      // With NCE a score tends to the log of a probability: to log(.2) for each of a user's 5
      // items. No score is below -5.
      {"nce", kSampled, {"model.tasks[0].loss=NCE"}, .5},
      {"hybrid", kSampled, {"mode=HYBRID", "reproducible=false", "nn_worker.replicas=2"}},
      {"in_batch", kInBatch, {}},
      {"in_batch_hybrid", kInBatch, {"mode=HYBRID", "reproducible=false", "nn_worker.replicas=2"}},
      {"in_batch_device", kInBatch, {"nn_worker.device=HOST", "nn_worker.replicas=2"}},
  };
  // A file of pairs that are not in the training data: each user with the items of another group.
  std::string others;
  for (int user = 0; user < 50; ++user) {
    for (int i = 0; i < 5; ++i) {
      absl::StrAppend(&others, "u", user, "\ti", (user + 3) % 10 * 5 + i, "\t1\n");
    }
  }
  const std::string other_pairs = WriteFile("others.tsv", others);
  for (const Case& of : cases) {
    const std::string job = WriteRetrievalJob(of.head);
    const std::string report = Train(job, of.name, of.sets);
    EXPECT_EQ(JsonNumber(report, "samples"), 20000) << of.name;
    // A prediction is the score of the record's own item.
    const auto mean_of = [&](const std::string& file) {
      const CommandEnd end = Satrap({"predict", Path(of.name), file});
      EXPECT_EQ(end.exit_code, 0) << end.err;
      double sum = 0;
      int count = 0;
      for (const absl::string_view line : absl::StrSplit(end.out, '\n', absl::SkipEmpty())) {
        double value = 0;
        EXPECT_TRUE(absl::SimpleAtod(line, &value)) << line;
        sum += value;
        ++count;
      }
      EXPECT_GT(count, 0);
      return sum / count;
    };
    EXPECT_GT(mean_of(Path("train.tsv")), mean_of(other_pairs) + of.margin) << of.name;
  }
}

TEST_F(CandidatesTest, AListThatDoesNotServeEndsTheRunWithItsReason) {
  WriteTrainData(500);
  const std::string job = WriteRetrievalJob(kSampled);
  const CommandEnd many = RunTraining(job, "many", {"model.candidates.count=51"});
  EXPECT_NE(many.exit_code, 0);
  EXPECT_THAT(many.err, HasSubstr("model.candidates.count: must be at most 50, the number of items "
                                  "of the list, because `unique` draws no item twice, got 51"));
  WriteFile("twice.txt", "i1\ni1\n");
  const CommandEnd twice = RunTraining(job, "twice", {"model.candidates.list=twice.txt"});
  EXPECT_NE(twice.exit_code, 0);
  EXPECT_THAT(twice.err, HasSubstr("twice.txt:2: the item 'i1' occurs twice"));
}

}  // namespace
}  // namespace satrap
