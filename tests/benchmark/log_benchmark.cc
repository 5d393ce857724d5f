// Measures what it costs to read the log of a long run, before and after the log is compacted.
//
//   log_benchmark [--entries=100000] [--folder=/tmp]
//
// Makes a run's folder as an older build left it: the log has one generation and `entries` - 1
// cuts, and the last 5 cuts have a folder. Prints one JSON line for this log, and one after the
// claim of a generation has compacted it:
//
//   status_seconds    making what `satrap status` prints for a run that is not in progress
//   stop_seconds      making what `satrap stop` prints for a stopped run: how to resume it
//   claim_seconds     a coordinator claims the next generation, which every recovery begins with;
//                     the first one also compacts the log
//   files, bytes      of the log, as the disk keeps it: blocks of 4 KiB
//
// Files come from the page cache. The folder is removed.

#include <stdlib.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/checkpoint/checked_text.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/config/job_config.h"
#include "common/flags/flags.h"
#include "common/json/json.h"
#include "common/testing/measure.h"
#include "common/thread/clock.h"
#include "deploy/cli/show/run_state.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "deploy/launcher/process/run_progress.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kCutsThere = 5;

void WriteEntry(const std::string& run_dir, uint64_t number, const RunLogEntry& entry) {
  std::ofstream(absl::StrCat(run_dir, "/log/", absl::Dec(number, absl::kZeroPad8)))
      << CheckedText(entry);
}

void MakeCut(const std::string& run_dir, uint64_t number, RunLogEntry* entry) {
  CheckpointManifest manifest;
  manifest.set_version(kManifestVersion);
  manifest.set_generation(1);
  manifest.set_cut(number);
  manifest.set_step(100 * number);
  manifest.mutable_position()->set_step(100 * number);
  const std::string folder = FolderOfCut(run_dir, CutName(1, number));
  fs::create_directories(folder);
  CHECK_OK(WriteManifest(folder, manifest));
  uint32_t crc32c = 0;
  CHECK_OK(ReadManifest(folder, DiskFileSystem(), &crc32c).status());
  entry->mutable_cut()->set_manifest_crc32c(crc32c);
}

void MakeLog(const JobConfig& job, uint64_t entries) {
  fs::create_directories(job.run_dir() + "/log");
  RunLogEntry generation;
  generation.set_unix_ms(1767225600000);
  generation.mutable_generation()->set_generation(1);
  generation.mutable_generation()->set_run_id(7);
  generation.mutable_generation()->set_began(BEGAN_START);
  *generation.mutable_generation()->mutable_job() = job;
  WriteEntry(job.run_dir(), 1, generation);
  for (uint64_t cut = 1; cut < entries; ++cut) {
    RunLogEntry entry;
    entry.set_unix_ms(1767225600000 + 60000 * cut);
    entry.mutable_cut()->set_generation(1);
    entry.mutable_cut()->set_cut(CutName(1, cut));
    entry.mutable_cut()->set_step(100 * cut);
    entry.mutable_cut()->set_bytes(2913402112);
    entry.mutable_cut()->set_seconds(4.2);
    entry.mutable_cut()->set_manifest_crc32c(1478812084);
    if (cut + kCutsThere >= entries) MakeCut(job.run_dir(), cut, &entry);
    WriteEntry(job.run_dir(), cut + 1, entry);
  }
}

void Measure(const char* log, const JobConfig& job) {
  const std::string& run_dir = job.run_dir();
  int64_t files = 0;
  int64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(run_dir + "/log")) {
    struct stat status;
    CHECK(stat(file.path().c_str(), &status) == 0);
    ++files;
    bytes += int64_t{status.st_blocks} * 512;
  }
  const double status_seconds =
      WallSecondsOf([&] { CHECK_OK(EndedRunText(run_dir, 1767225600000).status()); });
  const double stop_seconds = WallSecondsOf([&] {
    const auto progress = ReadRunProgress(run_dir);
    CHECK_OK(progress.status());
    CHECK(!ResumeText(run_dir, *progress, run_dir).empty());
  });
  ClaimRequest request;
  request.job = job;
  request.writer = 1;
  request.run_id = 7;
  request.unix_ms = 1767225600000;
  request.ended.set_text("embedding_ps 0 was killed");
  const double claim_seconds =
      WallSecondsOf([&] { CHECK_OK(ClaimGeneration(request, DiskFileSystem()).status()); });
  LogLine line;
  line.set_benchmark("log");
  line.set_cpu(CpuName());
  line.set_log(log);
  line.set_files(files);
  line.set_bytes(bytes);
  line.set_status_seconds(status_seconds);
  line.set_stop_seconds(stop_seconds);
  line.set_claim_seconds(claim_seconds);
  PrintJson(line);
}

int Run(int argc, char** argv) {
  uint64_t entries = 100000;
  std::string folder = "/tmp";
  const auto code = TakeProgramFlags(
      argc, argv, "usage: log_benchmark [FLAGS]",
      {NumberFlag("entries", "N", "of the log (default: 100000)", &entries, kCutsThere + 1),
       TextFlag("folder", "DIR", "where the run is (default: /tmp)", &folder)});
  if (code.has_value()) return *code;
  std::string run_dir = folder + "/log_benchmark.XXXXXX";
  CHECK(mkdtemp(run_dir.data()) != nullptr) << folder;
  JobConfig job;
  job.set_run_dir(run_dir);
  ResolveJob(&job);
  MakeLog(job, entries);
  Measure("as written", job);
  // Compaction leaves old files behind; each later claim and each cut removes some of them.
  size_t files = 0;
  for (size_t before = 1; before != files;) {
    before = files;
    auto log = RunLog::Open(run_dir, DiskFileSystem());
    CHECK_OK(log.status());
    CHECK_OK(log->RemoveCompacted(kRemoveAtOnce));
    files = static_cast<size_t>(
        std::distance(fs::directory_iterator(run_dir + "/log"), fs::directory_iterator()));
  }
  Measure("compacted", job);
  fs::remove_all(run_dir);
  return 0;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) { return satrap::Run(argc, argv); }
