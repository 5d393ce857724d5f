#include "tests/fault/fault_fixture.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "common/checkpoint/run_log.h"
#include "common/file/file_system.h"
#include "common/numeric/hash.h"
#include "common/thread/thread_pool_executor.h"
#include "embedding_ps/checkpoint/load_tables.h"
#include "embedding_ps/table/embedding_table.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr double kSecondsToEnd = 120;

// The splits are small, so that when a process dies, some are done, some open and some not yet
// leased. There is a test pass, because a process may die in it, too. There are two real tables and
// a network, so that a cut holds more than the counts. The feature `record` has the number of its
// record as its only id. Cuts are taken by steps, so that on a machine of any speed most of the run
// is still to come after the first cuts.
constexpr char kJob[] = R"(
name: "counting"
global_batch_size: 256
max_staleness: 2
data {
  numerics { name: "I1" }
  features { name: "C1" table: "rows" }
  features { name: "C2" table: "rows" }
  features { name: "record" table: "tally" }
  split_rows: 2048
  shuffle_rows: 512
  synthetic {
    train_samples: $0
    valid_samples: 0
    test_samples: 2000
    numeric_features: 1
    vocabulary_sizes: [ 50, 1000 ]
    interacting_features: 2
    record_numbers: true
  }
}
tables {
  name: "rows"
  id: 0
  segments { name: "embedding" dim: 4 optimizer { learning_rate: 0.1 adagrad {} } }
  segments { name: "linear" dim: 1 optimizer { learning_rate: 0.1 adagrad {} } }
}
$1
model {
  layers { name: "linear" inputs: "*.linear" sum {} }
  layers { name: "pairs" inputs: "*.embedding" fm {} }
  layers { name: "deep" inputs: [ "*.embedding", "numeric" ] mlp { units: 8 output_units: 1 } }
  layers { name: "tally" inputs: "record.count" tally {} }
  layers { name: "logit" inputs: [ "linear", "pairs", "deep", "tally" ] add {} }
}
dense_optimizer { learning_rate: 0.01 adam {} }
checkpoint { every_seconds: 0 every_steps: 40 }
data_loader { replicas: 2 }
embedding_worker { replicas: 2 }
embedding_ps { replicas: 2 }
nn_worker { replicas: 2 }
)";

// Whether every thread of the process is stopped: the third field of its stat file is T.
bool IsStopped(pid_t pid) {
  std::error_code error;
  for (const auto& task : fs::directory_iterator(absl::StrCat("/proc/", pid, "/task"), error)) {
    const std::string stat = ReadFile(task.path() / "stat");
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || stat.compare(name_end, 3, ") T") != 0) return false;
  }
  return !error;
}

}  // namespace

// A record's row begins at 0 and grows by 1 each time that the record is trained: without
// normalisation and with a rate of 1 the layer `tally` adds exactly 1, whatever batch the record is
// in.
std::string FaultFixture::TallyTable() {
  return R"(tables {
  name: "tally"
  id: 1
  normalisation: NONE
  segments {
    name: "count"
    dim: 1
    initializer { constant {} }
    optimizer { learning_rate: 1 sgd {} }
  }
}
)";
}

std::string FaultFixture::WriteCountingJob(int64_t records, const std::string& more) {
  return WriteFile("job.textproto",
                   absl::StrCat(absl::Substitute(kJob, records, TallyTable()), more, "\n"));
}

Command FaultFixture::StartRun(const std::string& job, const std::vector<std::string>& args) {
  std::vector<std::string> all = {"train", job, "--run_dir", RunDir()};
  all.insert(all.end(), args.begin(), args.end());
  return StartSatrap(all);
}

CommandEnd FaultFixture::Resume(const std::vector<std::string>& args) {
  std::vector<std::string> all = {"resume", RunDir()};
  all.insert(all.end(), args.begin(), args.end());
  return WaitFor(StartSatrap(all), kSecondsToEnd);
}

void FaultFixture::LeaveAKilledRun(const std::string& job, const std::vector<std::string>& args) {
  const Command run = StartRun(job, args);
  ASSERT_TRUE(WaitForCuts(2)) << ReadFile(run.err_path);
  SendSignal(run.pid, SIGKILL);
  // Only the launcher is killed; its processes must end by themselves.
  EXPECT_EQ(WaitFor(run, 60).exit_code, -1);
  EXPECT_TRUE(NobodyIsLeft());
}

void FaultFixture::Signal(const std::string& role, int index, int signal) {
  // Perhaps a generation has just ended and the next one has not started the process yet.
  pid_t pid = 0;
  for (int attempt = 0; attempt < 1000 && pid == 0; ++attempt) {
    pid = RoleProcess(RunDir(), role, index);
    if (pid == 0) WaitUntil([&] { return RoleProcess(RunDir(), role, index) != 0; }, 0.05);
  }
  ASSERT_GT(pid, 0) << "no process of " << role << " " << index;
  SendSignal(pid, signal);
  if (signal != SIGSTOP) return;
  // On a busy machine some of the process's threads keep running for a while.
  for (int attempt = 0; attempt < 1000 && !IsStopped(pid); ++attempt) {
    WaitUntil([&] { return IsStopped(pid); }, 0.05);
  }
  EXPECT_TRUE(IsStopped(pid)) << role << " " << index << " does not stop";
}

bool FaultFixture::NobodyIsLeft() const { return WaitUntilOver(RunDir(), 60); }

std::vector<RunLogEntry> FaultFixture::Log() const {
  // A coordinator may append to the log at the same time, but an entry that has its final name is
  // complete.
  const absl::StatusOr<RunLog> log = RunLog::Open(RunDir(), DiskFileSystem());
  if (!log.ok()) {
    ADD_FAILURE() << log.status().ToString();
    return {};
  }
  return log->entries();
}

int FaultFixture::Cuts() const {
  const std::vector<RunLogEntry> log = Log();
  return static_cast<int>(std::count_if(log.begin(), log.end(),
                                        [](const RunLogEntry& entry) { return entry.has_cut(); }));
}

int FaultFixture::Generations() const {
  const std::vector<RunLogEntry> log = Log();
  return static_cast<int>(std::count_if(
      log.begin(), log.end(), [](const RunLogEntry& entry) { return entry.has_generation(); }));
}

bool FaultFixture::WaitForCuts(int count, double timeout_s) {
  return WaitUntil([&] { return Cuts() >= count; }, timeout_s);
}

bool FaultFixture::WaitForGenerations(int count, double timeout_s) {
  return WaitUntil([&] { return Generations() >= count; }, timeout_s);
}

std::string FaultFixture::NewestCut() const {
  std::string cut;
  for (const RunLogEntry& entry : Log()) {
    // The cut is read from the log, not from a link or the newest folder, because a folder may hold
    // a cut that was never committed.
    if (entry.has_cut()) cut = entry.cut().cut();
  }
  return CheckpointsDir(RunDir()) + "/" + cut;
}

std::string FaultFixture::ModelDigest() const {
  const std::string report = ReadFile(RunDir() + "/report.json");
  const std::string name = "\"model_digest\":\"";
  const size_t at = report.find(name);
  return at == std::string::npos ? "" : report.substr(at + name.size(), 16);
}

void FaultFixture::ExpectEachRecordTrained(int64_t records, int times) {
  const absl::StatusOr<RunLog> log = RunLog::Open(RunDir(), DiskFileSystem());
  ASSERT_TRUE(log.ok()) << log.status().ToString();
  ASSERT_NE(log->last_generation(), nullptr);
  // The table's config is read from the log, because a test may have changed the job by a resume or
  // a scale.
  std::unique_ptr<EmbeddingTable> tally;
  for (const TableConfig& config : log->last_generation()->job().tables()) {
    if (config.name() != "tally") continue;
    auto table = EmbeddingTable::Create(config, {});
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    tally = *std::move(table);
  }
  ASSERT_NE(tally, nullptr) << "the job counts nothing";
  ThreadPoolExecutor executor(1);
  LoadOptions options;
  // One table loads the files of all PSs, however many PSs there were.
  options.tables = {tally.get()};
  options.directory = NewestCut();
  options.executor = &executor;
  options.file_system = DiskFileSystem();
  std::promise<absl::Status> loaded;
  LoadTables(options, [&loaded](const LoadResult& result) { loaded.set_value(result.status); });
  const absl::Status status = loaded.get_future().get();
  ASSERT_TRUE(status.ok()) << status.ToString();
  // No row may belong to a key that is not a record's. Then the counts of the known keys are
  // complete.
  EXPECT_EQ(tally->rows(), records);

  std::vector<uint64_t> keys;
  for (int64_t record = 0; record < records; ++record) {
    keys.push_back(KeyOf(IdOfRecord(record), Xxh64("record")));
  }
  std::vector<float> counts(keys.size());
  std::vector<uint8_t> presence((keys.size() + 7) / 8);
  tally->Lookup(keys, AbsentRows::kZeros, absl::MakeSpan(counts), absl::MakeSpan(presence));
  int64_t wrong = 0;
  // Print only the first few wrong counts; a lost split would print thousands of lines.
  for (int64_t record = 0; record < records; ++record) {
    if (counts[record] == static_cast<float>(times)) continue;
    if (++wrong <= 5) {
      ADD_FAILURE() << "record " << record << " was trained " << counts[record] << " times";
    }
  }
  EXPECT_EQ(wrong, 0);
}

void FaultFixture::ExpectFinished(const CommandEnd& end, int64_t records, int times) {
  EXPECT_EQ(end.exit_code, 0) << end.err;
  ExpectEachRecordTrained(records, times);
  EXPECT_TRUE(NobodyIsLeft());
}

}  // namespace satrap
