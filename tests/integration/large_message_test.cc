// Tests whole runs on data with which runs of earlier builds failed: messages larger than
// max_message_bytes, and labels that are not classes.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

// A part has 128 records with 200 ids each, so a PutBatch has over 200 KB. With dim 16 the answers
// to a Lookup and to NextBatch, a push and an Update are even larger.
constexpr char kListsJob[] = R"(
  name: "lists"
  mode: SYNC
  reproducible: true
  global_batch_size: 256
  epochs: 2
  data {
    csv { columns { name: "label" kind: LABEL } columns { name: "words" kind: MULTI_ID } }
    train_files: "train.csv"
    test_files: "train.csv"
    features { name: "words" table: "words" transfer: ROWS }
  }
  tables {
    name: "words"
    id: 0
    segments { name: "linear" dim: 1 optimizer { learning_rate: 0.1 adagrad {} } }
    segments { name: "vector" dim: 15 optimizer { learning_rate: 0.1 adagrad {} } }
  }
  model {
    layers { name: "of_vector" inputs: "*.vector" linear { units: 1 } }
    layers { name: "of_linear" inputs: "*.linear" sum {} }
    layers { name: "logit" inputs: "of_vector" inputs: "of_linear" add {} }
  }
  data_loader { replicas: 2 }
  embedding_worker { replicas: 2 }
  embedding_ps { replicas: 2 }
  nn_worker { replicas: 2 }
)";

// The output has as many values as a vector of the table; no layer states this number.
constexpr char kClassesJob[] = R"(
  name: "classes"
  global_batch_size: 64
  data {
    csv { columns { name: "kind" kind: LABEL numeric_label: true }
          columns { name: "word" kind: ID } }
    train_files: "train.csv"
    features { name: "word" table: "words" }
  }
  tables {
    name: "words"
    id: 0
    segments { name: "vector" dim: 3 optimizer { learning_rate: 0.1 adagrad {} } }
  }
  model {
    layers { name: "kinds" inputs: "word.vector" bias {} }
    tasks { name: "kind" label: "kind" output: "kinds" loss: SOFTMAX_CROSS_ENTROPY }
  }
  evaluation { metric: LOGLOSS }
)";

class LargeMessageTest : public RunFixture {
 protected:
  // Trains with `assignments` of fields (--set) and returns the report.
  std::string Train(const std::string& job, const std::string& run,
                    std::vector<std::string> assignments = {}) {
    assignments.push_back("data_root=" + dir_);
    std::vector<std::string> args = {"train",   job,        "--run_dir",
                                     Path(run), "--report", Path(run + ".json")};
    for (const std::string& assignment : assignments) {
      args.push_back("--set");
      args.push_back(assignment);
    }
    const CommandEnd end = Satrap(args);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    err_ = end.err;
    return ReadFile(Path(run + ".json"));
  }

  static std::string DigestIn(const std::string& report) {
    const std::string name = R"("model_digest":")";
    EXPECT_THAT(report, HasSubstr(name));
    return report.substr(report.find(name) + name.size(), 16);
  }

  // 1,000 records with 200 ids each, out of 6,000 ids.
  void WriteLists() {
    std::string lines;
    uint64_t random = 1;
    for (int i = 0; i < 1000; ++i) {
      absl::StrAppend(&lines, i % 2, ",");
      for (int k = 0; k < 200; ++k) {
        random = random * 6364136223846793005 + 1442695040888963407;
        absl::StrAppend(&lines, k == 0 ? "" : "|", "w", (random >> 33) % 6000);
      }
      absl::StrAppend(&lines, "\n");
    }
    WriteFile("train.csv", lines);
  }

  std::string err_;  // what the last command told
};

TEST_F(LargeMessageTest, PartsLargerThanAMessageTrainToTheSameBits) {
  WriteLists();
  const std::string job = WriteFile("lists.textproto", kListsJob);
  const std::string whole = Train(job, "whole");
  EXPECT_EQ(JsonNumber(whole, "samples"), 2000);
  const std::string digest = DigestIn(whole);
  EXPECT_NE(digest, std::string(16, '0'));
  const std::string cut = Train(job, "cut", {"max_message_bytes=65536"});
  EXPECT_EQ(JsonNumber(cut, "samples"), 2000);
  EXPECT_EQ(JsonNumber(cut, "quarantined"), 0);
  EXPECT_EQ(DigestIn(cut), digest);
  // The embedding worker pools the rows, so the answers to large parts are small.
  const std::string pooled = Train(job, "pooled", {"data.features[0].transfer=POOLED"});
  EXPECT_EQ(DigestIn(Train(job, "pooled_cut",
                           {"data.features[0].transfer=POOLED", "max_message_bytes=65536"})),
            DigestIn(pooled));
}

// The step's Updates of one worker have been sent in chunks, while those of another worker may
// still be in flight.
TEST_F(LargeMessageTest, ADeathAmongChunksLeavesTheModelOfAnUndisturbedRun) {
  WriteLists();
  const std::string text =
      absl::StrCat(kListsJob, "gradient_clip_norm: 0.05 checkpoint { every_steps: 2 }");
  const std::string undisturbed = Train(WriteFile("undisturbed.textproto", text), "undisturbed");
  const std::string killed =
      Train(WriteFile("killed.textproto",
                      text + "kill_points { point: WORKER_AFTER_UPDATE replica: 1 visit: 5 }"),
            "killed", {"max_message_bytes=65536"});
  EXPECT_THAT(err_, HasSubstr("generation 2 continues from "));
  EXPECT_EQ(JsonNumber(killed, "samples"), 2000);
  EXPECT_EQ(DigestIn(killed), DigestIn(undisturbed));
}

TEST_F(LargeMessageTest, ALabelThatIsNoClassIsABadRecordWhateverTheLayers) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&lines, i == 1500 ? 7 : i % 3, ",w", i % 3, "\n");
  WriteFile("train.csv", lines);
  const std::string report = Train(WriteFile("classes.textproto", kClassesJob), "run");
  EXPECT_EQ(JsonNumber(report, "samples"), 2999);
  EXPECT_EQ(JsonNumber(report, "quarantined"), 1);
}

}  // namespace
}  // namespace satrap
