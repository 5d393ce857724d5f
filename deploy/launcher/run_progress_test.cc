#include "deploy/launcher/run_progress.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/checkpoint/manifest.h"
#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

class RunProgressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = ::testing::TempDir() + "run_progress_test.XXXXXX";
    ASSERT_NE(mkdtemp(dir_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void Append(const std::string& text) {
    auto log = RunLog::Open(dir_, DiskFileSystem());
    ASSERT_TRUE(log.ok()) << log.status();
    RunLogEntry entry;
    const absl::Status parsed = ParseText(text, "entry", &entry);
    ASSERT_TRUE(parsed.ok()) << parsed;
    ASSERT_TRUE(log->Append(entry).ok());
  }
  void WriteCut(const std::string& folder, uint64_t step, uint64_t samples) {
    std::filesystem::create_directories(folder);
    CheckpointManifest manifest;
    manifest.set_version(kManifestVersion);
    manifest.set_step(step);
    manifest.mutable_position()->set_samples(samples);
    ASSERT_TRUE(WriteManifest(folder, manifest).ok());
  }
  RunProgress Read() const {
    const auto progress = ReadRunProgress(dir_);
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress.value_or(RunProgress());
  }

  std::string dir_;
};

StatusAnswer At(uint64_t step, uint64_t samples) {
  StatusAnswer status;
  status.mutable_train()->set_step(step);
  status.mutable_train()->set_samples(samples);
  return status;
}

TEST_F(RunProgressTest, ARunWithoutALogIsAtTheBeginning) {
  const RunProgress progress = Read();
  EXPECT_EQ(progress.generation, 0u);
  EXPECT_FALSE(progress.job.has_value());
  EXPECT_EQ(BeginningText(progress), "the beginning");
  EXPECT_EQ(LostText(progress, At(0, 0)), "");
  EXPECT_EQ(LostText(progress, At(12, 3000)), "about 12 steps (3,000 samples)");
}

TEST_F(RunProgressTest, GoesOnFromTheNewestCut) {
  WriteCut(dir_ + "/checkpoints/cut_0001_000002", 1200, 9000);
  Append("generation { generation: 1 job { name: 'first' } cause: 'start' }");
  Append("cut { generation: 1 cut: 'cut_0001_000001' step: 800 }");
  Append("cut { generation: 1 cut: 'cut_0001_000002' step: 1200 }");
  Append("generation { generation: 2 cut: 'cut_0001_000002' job { name: 'second' } cause: 'x' }");
  const RunProgress progress = Read();
  EXPECT_EQ(progress.generation, 2u);
  EXPECT_EQ(progress.cause, "x");
  EXPECT_EQ(progress.job->name(), "second");
  EXPECT_EQ(BeginningText(progress), "step 1,200 (cut_0001_000002)");
  EXPECT_EQ(LostText(progress, At(1200, 9000)), "");
  EXPECT_EQ(LostText(progress, At(1300, 10000)), "about 100 steps (1,000 samples)");
  EXPECT_FALSE(progress.result.has_value());
}

TEST_F(RunProgressTest, ARunTakenBackToAnOlderCutStaysThere) {
  WriteCut(dir_ + "/elsewhere", 500, 4000);
  Append("cut { generation: 1 cut: 'cut_0001_000001' step: 800 }");
  Append("cut { generation: 1 cut: 'cut_0001_000002' step: 1200 }");
  Append("generation { generation: 2 cut: 'cut_0001_000001' cause: 'resume' }");
  EXPECT_EQ(BeginningText(Read()), "step 800 (cut_0001_000001)");
  Append("generation { generation: 3 cut: '" + dir_ + "/elsewhere' cause: 'resume' }");
  EXPECT_THAT(BeginningText(Read()), HasSubstr("step 500 ("));
  Append("cut { generation: 3 cut: 'cut_0003_000001' step: 900 }");
  EXPECT_EQ(BeginningText(Read()), "step 900 (cut_0003_000001)");
}

TEST_F(RunProgressTest, HasTheResultOfAFinishedRun) {
  Append("generation { generation: 1 }");
  Append("end { result { steps: 77 } }");
  EXPECT_EQ(Read().result->steps(), 77u);
}

}  // namespace
}  // namespace satrap
