#include "deploy/launcher/testing/logged_run.h"

#include <cstdlib>
#include <filesystem>

#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/config/text_format.h"

namespace satrap {

namespace fs = std::filesystem;

void AppendToLog(const std::string& run_dir, const std::string& entry_text) {
  auto log = RunLog::Open(run_dir, DiskFileSystem());
  ASSERT_TRUE(log.ok()) << log.status();
  RunLogEntry entry;
  const absl::Status parsed = ParseText(entry_text, "entry", &entry);
  ASSERT_TRUE(parsed.ok()) << parsed;
  ASSERT_TRUE(log->Append(entry).ok());
}

void WriteCut(const std::string& run_dir, uint64_t generation, uint64_t number, uint64_t step,
              uint64_t samples) {
  const std::string folder = FolderOfCut(run_dir, CutName(generation, number));
  fs::create_directories(folder);
  CheckpointManifest manifest;
  manifest.set_version(kManifestVersion);
  manifest.set_generation(generation);
  manifest.set_cut(number);
  manifest.set_step(step);
  manifest.mutable_position()->set_samples(samples);
  ASSERT_TRUE(WriteManifest(folder, manifest).ok());
}

void LoggedRunTest::SetUp() {
  dir_ = ::testing::TempDir() + "logged_run.XXXXXX";
  ASSERT_NE(mkdtemp(dir_.data()), nullptr);
  dir_ = fs::canonical(dir_).string();
}

void LoggedRunTest::TearDown() { fs::remove_all(dir_); }

}  // namespace satrap
