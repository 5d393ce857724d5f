// Tests files of a run's folder, other than its cuts and its log, that are replaced or damaged
// while the run is stopped: docs/formats.md, "Run folder".

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "common/candidates/candidate_list.h"
#include "gmock/gmock.h"
#include "tests/fault/fault_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kSecondsToEnd = 120;

// Records of users and the items that they took. The sampled candidates are rows of the same items.
// There are so many epochs that no machine finishes them before the test stops the run.
constexpr char kJob[] = R"(
name: "folder"
global_batch_size: 64
epochs: 1000000
data_root: "$0"
data {
  csv {
    separator: "\t"
    columns { name: "user" kind: ID }
    columns { name: "item" kind: ID }
    columns { name: "price" kind: NUMERIC }
    columns { name: "label" kind: LABEL }
  }
  train_files: "train.tsv"
  features { name: "user" table: "users" }
  features { name: "item" table: "items" }
  numerics { name: "price" }
}
tables {
  name: "users"
  id: 0
  segments { name: "embedding" dim: 4 optimizer { learning_rate: 0.1 adagrad {} } }
}
tables {
  name: "items"
  id: 1
  segments { name: "embedding" dim: 4 optimizer { learning_rate: 0.1 adagrad {} } }
}
model {
  layers { name: "vector" inputs: [ "user.embedding", "numeric" ] 
           mlp { units: 8 output_units: 4 } }
  layers { name: "scores" inputs: [ "vector", "item.embedding", "candidates.embedding" ]
           candidate_logits {} }
  tasks { name: "next" output: "scores" loss: SAMPLED_SOFTMAX }
  candidates { feature: "item" count: 20 }
}
dense_optimizer { learning_rate: 0.01 adam {} }
checkpoint { every_steps: 20 }
data_loader { replicas: 1 }
embedding_worker { replicas: 2 }
embedding_ps { replicas: 2 }
nn_worker { replicas: 1 }
)";

std::vector<std::string> LinesWith(const std::string& text, const std::string& part) {
  std::vector<std::string> found;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, part)) found.emplace_back(line);
  }
  return found;
}

class RunFolderTest : public FaultFixture {
 protected:
  // Writes records of 50 items. The price of one record is too large for a model, so a loader
  // warns.
  std::string WriteDataAndJob() {
    std::string text;
    for (int i = 0; i < 2000; ++i) {
      absl::StrAppend(&text, "u", i % 40, "\ti", i % 50, "\t", i == 1000 ? "1e22" : "0.5", "\t1\n");
    }
    WriteFile("train.tsv", text);
    return WriteFile("job.textproto", absl::Substitute(kJob, dir_));
  }
  // Waits until the run has committed one more cut.
  bool WaitForAnotherCut() { return WaitForCuts(Cuts() + 1); }
  void Stop(const Command& run) {
    const CommandEnd stop = Satrap({"stop", RunDir()});
    EXPECT_EQ(stop.exit_code, 0) << stop.err;
    const CommandEnd end = WaitFor(run, kSecondsToEnd);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_TRUE(NobodyIsLeft());
  }
  // Leaves a run that has taken some cuts and was stopped. Returns what the run has written to
  // stderr.
  std::string LeaveAStoppedRun() {
    const Command run = StartRun(WriteDataAndJob());
    EXPECT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
    Stop(run);
    return ReadFile(run.err_path);
  }
  // Expects that resuming the run is refused with one line about `file`. Returns that line.
  std::string RefusalAbout(const std::string& file) {
    const int cuts = Cuts();
    const CommandEnd refused = Resume();
    EXPECT_EQ(refused.exit_code, 1) << refused.err;
    EXPECT_TRUE(NobodyIsLeft());
    EXPECT_EQ(Cuts(), cuts) << "nothing is trained with it";
    const std::vector<std::string> lines = LinesWith(refused.err, file);
    EXPECT_EQ(lines.size(), 1u) << refused.err;
    EXPECT_EQ(LinesWith(refused.err, "the job failed").size(), 1u) << refused.err;
    return lines.empty() ? "" : lines[0];
  }
};

TEST_F(RunFolderTest, ARunGoesOnWithTheCandidatesThatItBeganWithAlone) {
  LeaveAStoppedRun();
  const std::string path = RunDir() + "/candidates.bin";
  const std::string bytes = ReadFile(path);
  // The same items in another order would lead to other draws.
  auto list = ReadCandidateList(path);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 50u);
  std::swap(list->ids[0], list->ids[1]);
  fs::remove(path);
  ASSERT_TRUE(WriteCandidateList(path, *list).ok());
  EXPECT_THAT(RefusalAbout(path), AllOf(HasSubstr("is not the list of items that this run began"),
                                        HasSubstr("Put the file back as it was")));
  // A damaged list must not be mistaken for another list.
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() - 5);
  EXPECT_THAT(RefusalAbout(path), AllOf(HasSubstr("is damaged"), HasSubstr("remove it")));

  // A list that is missing is made again, with the same bytes, because the items are the same.
  fs::remove(path);
  const Command resumed = StartSatrap({"resume", RunDir()});
  EXPECT_TRUE(WaitForAnotherCut()) << ReadFile(resumed.err_path);
  Stop(resumed);
  EXPECT_EQ(ReadFile(path), bytes);
}

TEST_F(RunFolderTest, DamagedWarningsAreNamedInOneLineAndTheRunGoesOn) {
  const std::string before = LeaveAStoppedRun();
  EXPECT_EQ(LinesWith(before, "column 'price': 1e+22").size(), 1u) << before;
  const std::string path = RunDir() + "/data_warnings.textproto";
  const std::string text = ReadFile(path);
  ASSERT_THAT(text, HasSubstr("1e+22"));
  std::ofstream(path) << text.substr(0, text.size() / 2);
  const Command resumed = StartSatrap({"resume", RunDir()});
  EXPECT_TRUE(WaitForAnotherCut()) << ReadFile(resumed.err_path);
  Stop(resumed);
  const std::string after = ReadFile(resumed.err_path);
  const std::vector<std::string> lines = LinesWith(after, path);
  ASSERT_EQ(lines.size(), 1u) << after;
  EXPECT_THAT(lines[0], AllOf(HasSubstr("warning"), HasSubstr("damaged")));
}

}  // namespace
}  // namespace satrap
