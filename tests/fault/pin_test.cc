// Tests commands that read the cuts of a run while the run trains and replaces its cuts: with
// `checkpoint.keep: 1` a cut exists only until the next one is committed. docs/operations.md,
// "Cuts, restarts, stopping".

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "common/checkpoint/cut_pin.h"
#include "gmock/gmock.h"
#include "tests/fault/fault_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kRecords = 4000;

// The run trains until it is stopped.
constexpr char kJob[] = R"(
name: "replacing"
global_batch_size: 64
epochs: 1000000
data_root: "$0"
data {
  csv {
    columns { name: "label" kind: LABEL }
    columns { name: "user" kind: ID }
    columns { name: "item" kind: ID }
  }
  train_files: "train.csv"
  test_files: "test.csv"
  features { name: "user" table: "rows" }
  features { name: "item" table: "rows" }
}
tables {
  name: "rows"
  id: 0
  segments { name: "linear" dim: 1 optimizer { learning_rate: 0.1 adagrad {} } }
}
model { layers { name: "logit" inputs: "*.linear" sum {} } }
dense_optimizer { learning_rate: 0.01 adam {} }
checkpoint { every_seconds: 0.1 keep: 1 }
embedding_ps { replicas: 2 }
)";

class PinTest : public FaultFixture {
 protected:
  void SetUp() override {
    FaultFixture::SetUp();
    std::string text;
    for (int64_t i = 0; i < kRecords; ++i) {
      absl::StrAppend(&text, i % 3 == 0 ? 1 : 0, ",", i % 50, ",", i % 700, "\n");
    }
    for (const char* name : {"train.csv", "test.csv"}) WriteFile(name, text);
    job_ = WriteFile("job.textproto", absl::Substitute(kJob, dir_));
    run_ = StartRun(job_);
    ASSERT_TRUE(WaitForCuts(2)) << ReadFile(run_.err_path);
  }
  void TearDown() override {
    if (run_.pid > 0) {
      SendSignal(run_.pid, SIGTERM);
      EXPECT_EQ(WaitFor(run_).exit_code, 130) << ReadFile(run_.err_path);
    }
    FaultFixture::TearDown();
  }
  static bool IsThere(const std::string& cut) { return fs::exists(cut + "/manifest"); }
  // Waits until the run has committed `count` further cuts.
  bool WaitForMoreCuts(int count) { return WaitForCuts(Cuts() + count); }
  // Pins the newest cut and names it.
  absl::StatusOr<std::unique_ptr<FileLock>> PinNewestCut(std::string* cut) {
    absl::StatusOr<std::unique_ptr<FileLock>> pin;
    // The newest cut may be replaced between these two lines.
    for (int attempt = 0; attempt < kReadsOfVanishingCuts && !pin.ok(); ++attempt) {
      *cut = NewestCut();
      pin = PinCut(*cut);
    }
    return pin;
  }

  std::string job_;
  Command run_;
};

TEST_F(PinTest, ARunThatReplacesItsCutsIsPredictedEvaluatedVerifiedAndBegunFrom) {
  for (const std::string round : {"1", "2", "3"}) {
    const CommandEnd predicted =
        Satrap({"predict", RunDir(), Path("test.csv"), "--run_dir", Path("prediction" + round),
                "--output_file", Path("scores" + round)});
    EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
    const std::string scores = ReadFile(Path("scores" + round));
    EXPECT_EQ(std::count(scores.begin(), scores.end(), '\n'), kRecords);
    const CommandEnd evaluated =
        Satrap({"evaluate", RunDir(), "--run_dir", Path("evaluation" + round)});
    EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
    const CommandEnd begun = Satrap({"train", job_, "--init_from", RunDir(), "--set", "epochs=1",
                                     "--run_dir", Path("begun" + round)});
    EXPECT_EQ(begun.exit_code, 0) << begun.err;
    for (const char* command : {"verify", "inspect"}) {
      const CommandEnd read = Satrap({"checkpoint", command, RunDir()});
      EXPECT_EQ(read.exit_code, 0) << read.err;
    }
  }
}

TEST_F(PinTest, APinnedCutStaysAndIsRemovedOnceItIsReadAndWhoReadsItForLongIsTold) {
  std::string cut;
  absl::StatusOr<std::unique_ptr<FileLock>> pin = PinNewestCut(&cut);
  ASSERT_TRUE(pin.ok()) << pin.status();
  ASSERT_TRUE(WaitForMoreCuts(13));
  EXPECT_TRUE(IsThere(cut));
  const CommandEnd verified = Satrap({"checkpoint", "verify", cut});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  // There may be at most four folders of cuts: that of the cut that the run keeps, one that it is
  // writing, one that it has just replaced, and the pinned one.
  int folders = 0;
  for (const auto& entry : fs::directory_iterator(RunDir() + "/checkpoints")) {
    if (entry.is_directory() && !entry.is_symlink()) ++folders;
  }
  EXPECT_LE(folders, 4);
  EXPECT_THAT(ReadFile(RunDir() + "/logs/coordinator_0.log"),
              AllOf(HasSubstr(cut), HasSubstr("10 cuts in a row"),
                    HasSubstr(absl::StrCat("process ", getpid()))));
  pin->reset();
  ASSERT_TRUE(WaitForMoreCuts(2));
  EXPECT_FALSE(IsThere(cut));
  const CommandEnd gone = Satrap({"train", job_, "--init_from", cut, "--run_dir", Path("gone")});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.err, HasSubstr("no longer exists"));
}

// If --init_from is the path of a cut and not that of its run, the command line pins the cut before
// it starts any role. It holds the pin until the new run no longer needs the cut.
TEST_F(PinTest, ACutThatIsNamedByItselfIsBegunFromAlthoughItsRunGoesOn) {
  std::string cut;
  absl::StatusOr<std::unique_ptr<FileLock>> pin = PinNewestCut(&cut);
  ASSERT_TRUE(pin.ok()) << pin.status();
  // The new run takes its first cut when it is asked to stop.
  const Command begun = StartSatrap({"train", job_, "--init_from", cut, "--set",
                                     "checkpoint.every_seconds=0", "--run_dir", Path("begun")});
  // The new run's command line holds a pin of its own as soon as it has printed where the run is.
  ASSERT_TRUE(
      WaitUntil([&] { return ReadFile(begun.err_path).find("runs in") != std::string::npos; }, 60));
  pin->reset();
  ASSERT_TRUE(WaitForMoreCuts(3));
  EXPECT_TRUE(IsThere(cut));
  EXPECT_TRUE(WaitUntilTraining(Path("begun")));
  EXPECT_TRUE(IsThere(cut)) << "the next generation of the new run may need it again";
  SendSignal(begun.pid, SIGTERM);
  const CommandEnd end = WaitFor(begun);
  EXPECT_EQ(end.exit_code, 130) << end.err;
  EXPECT_THAT(ReadFile(Path("begun/job.textproto")), HasSubstr(cut));
  ASSERT_TRUE(WaitForMoreCuts(2));
  EXPECT_FALSE(IsThere(cut));
}

TEST_F(PinTest, ARunThatHasACutOfItsOwnNeedsTheNamedCutNoMore) {
  std::string cut;
  absl::StatusOr<std::unique_ptr<FileLock>> pin = PinNewestCut(&cut);
  ASSERT_TRUE(pin.ok()) << pin.status();
  const std::string model = Path("model");
  fs::copy(cut, model, fs::copy_options::recursive);
  const Command begun =
      StartSatrap({"train", job_, "--init_from", model, "--run_dir", Path("begun")});
  ASSERT_TRUE(WaitUntil([&] { return fs::exists(Path("begun/checkpoints/latest/manifest")); }, 60));
  // Once the run has its first cut, it must let others remove the model.
  ASSERT_TRUE(WaitUntil([&] { return LockToRemoveCut(model, DiskFileSystem()).ok(); }, 60));
  SendSignal(begun.pid, SIGTERM);
  EXPECT_EQ(WaitFor(begun).exit_code, 130) << ReadFile(begun.err_path);
  // This lock is what another process holds while it removes the model.
  const auto removing = LockToRemoveCut(model, DiskFileSystem());
  ASSERT_TRUE(removing.ok() && *removing != nullptr) << removing.status();
  const Command resumed = StartSatrap({"resume", Path("begun")});
  EXPECT_TRUE(WaitUntil(
      [&] {
        std::error_code error;
        return absl::StartsWith(fs::read_symlink(Path("begun/checkpoints/latest"), error).string(),
                                "cut_0002");
      },
      60))
      << ReadFile(resumed.err_path);
  SendSignal(resumed.pid, SIGTERM);
  const CommandEnd end = WaitFor(resumed);
  EXPECT_EQ(end.exit_code, 130) << end.err;
}

}  // namespace
}  // namespace satrap
