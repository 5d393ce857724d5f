// Tests runs over data files: a file that changes while its run is stopped, and a record that kills
// an embedding role each time that it is trained. docs/consistency.md, "What each failure does".

#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "common/numeric/hash.h"
#include "gmock/gmock.h"
#include "tests/fault/fault_fixture.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kSecondsToEnd = 120;
constexpr int kFiles = 4;
constexpr int64_t kRecords = 80000;

// The number of values in a row of the table `wide`. A record needs this many floats for each of
// its ids.
constexpr int kWideDim = 512;

constexpr char kJob[] = R"(
name: "files"
global_batch_size: 128
max_staleness: 2
data_root: "$0"
data {
  csv {
    columns { name: "label" kind: LABEL }
    columns { name: "record" kind: ID }
    columns { name: "C1" kind: ID }
    columns { name: "many" kind: MULTI_ID }
  }
  train_files: "train-*.csv"
  features { name: "C1" table: "rows" }
  features { name: "many" table: "wide" transfer: POOLED }
  features { name: "record" table: "tally" }
  split_bytes: 65536
  shuffle_rows: 512
}
tables {
  name: "rows"
  id: 0
  segments { name: "linear" dim: 1 optimizer { learning_rate: 0.1 adagrad {} } }
}
$2
tables {
  name: "wide"
  id: 2
  segments { name: "embedding" dim: $1 optimizer { learning_rate: 0.01 sgd {} } }
}
model {
  layers { name: "linear" inputs: "C1.linear" sum {} }
  layers { name: "deep" inputs: "many.embedding" mlp { units: 4 output_units: 1 } }
  layers { name: "tally" inputs: "record.count" tally {} }
  layers { name: "logit" inputs: [ "linear", "deep", "tally" ] add {} }
}
dense_optimizer { learning_rate: 0.01 adam {} }
checkpoint { every_steps: 50 }
data_loader { replicas: 2 }
embedding_worker { replicas: 2 }
embedding_ps { replicas: 2 }
nn_worker { replicas: 2 }
)";

class DataTest : public FaultFixture {
 protected:
  // The data holds ids as strings, and the id of a string is its hash.
  uint64_t IdOfRecord(int64_t record) const override { return Xxh64(absl::StrCat(record)); }

  std::string DataFile(int index) const { return Path(absl::StrCat("train-", index, ".csv")); }

  // Writes the data files and a job that trains on them. Each record has one id in the column
  // `many`, except that record `wide_record` has `wide_ids` ids. Returns the job's path.
  std::string WriteFilesAndJob(int64_t wide_record = -1, int wide_ids = 0) {
    int64_t record = 0;
    for (int file = 0; file < kFiles; ++file) {
      std::string text;
      for (; record < kRecords * (file + 1) / kFiles; ++record) {
        absl::StrAppend(&text, record % 3 == 0 ? 1 : 0, ",", record, ",", record % 50, ",",
                        record % 20);
        if (record == wide_record) {
          for (int id = 100; id < 100 + wide_ids; ++id) absl::StrAppend(&text, "|", id);
        }
        absl::StrAppend(&text, "\n");
      }
      std::ofstream(DataFile(file)) << text;
    }
    return WriteFile("job.textproto", absl::Substitute(kJob, dir_, kWideDim, TallyTable()));
  }
};

TEST_F(DataTest, ARunGoesOnWithItsFilesAloneAndWhenTheyAreAsTheyWere) {
  LeaveAKilledRun(WriteFilesAndJob());
  const std::string file = DataFile(kFiles - 1);
  const std::string text = ReadFile(file);
  std::string changed = text;
  changed[10] = changed[10] == '1' ? '2' : '1';
  // The first text differs from the file in one byte; the second one lacks the file's end.
  for (const std::string& other : {changed, text.substr(0, text.size() - 100)}) {
    std::ofstream(file) << other;
    const CommandEnd refused = Resume();
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, AllOf(HasSubstr(file), HasSubstr("has changed since the run began"),
                                   HasSubstr("Put the file back as it was")));
    EXPECT_TRUE(NobodyIsLeft());
  }
  std::ofstream(file) << text;
  // A new file does not become part of the run, although the glob matches it.
  std::ofstream(DataFile(kFiles)) << "1,99999999,1,1\n";
  ExpectFinished(Resume(), kRecords);
}

// The list of files was fixed when the run began, so the field `data_root` only says in which
// folder the files lie.
TEST_F(DataTest, AFolderOfDataThatIsWrongEndsNoRun) {
  LeaveAKilledRun(WriteFilesAndJob());
  const CommandEnd wrong = Resume({"--set", absl::StrCat("data_root=", Path("nowhere"))});
  EXPECT_EQ(wrong.exit_code, 1) << wrong.out;
  EXPECT_THAT(wrong.err, HasSubstr(Path("nowhere")));
  EXPECT_TRUE(NobodyIsLeft());
  ExpectFinished(Resume(), kRecords);
}

TEST_F(DataTest, ARunWhoseDataHasMovedGoesOnFromThere) {
  LeaveAKilledRun(WriteFilesAndJob());
  std::filesystem::create_directory(Path("moved"));
  for (int file = 0; file < kFiles; ++file) {
    std::filesystem::rename(DataFile(file), Path(absl::StrCat("moved/train-", file, ".csv")));
  }
  const CommandEnd gone = Resume();
  EXPECT_EQ(gone.exit_code, 1) << gone.out;
  EXPECT_THAT(gone.err, HasSubstr(dir_));
  ExpectFinished(Resume({"--set", absl::StrCat("data_root=", Path("moved"))}), kRecords);
}

// The bytes of the private memory that a process may write (VmData); 0 if the process has ended.
uint64_t DataBytes(pid_t pid) {
  for (const absl::string_view line :
       absl::StrSplit(ReadFile(absl::StrCat("/proc/", pid, "/status")), '\n')) {
    if (!absl::StartsWith(line, "VmData:")) continue;
    uint64_t kib = 0;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() > 1 && absl::SimpleAtoi(words[1], &kib)) return kib << 10;
  }
  return 0;
}

class PoisonTest : public DataTest {
 protected:
  // The memory of the run's largest process at this moment.
  uint64_t MostDataBytes() const {
    uint64_t most = 0;
    for (const pid_t pid : RoleProcesses(RunDir())) most = std::max(most, DataBytes(pid));
    return most;
  }
  // The memory that a process needs for all records except the wide one. It is measured in a run,
  // whose folder is then removed.
  uint64_t BytesWithoutTheWideRecord() {
    // The run has so many epochs that it cannot end before the memory is read.
    const Command run = StartRun(WriteFilesAndJob(), {"--set", "epochs=1000"});
    EXPECT_TRUE(WaitForCuts(2)) << ReadFile(run.err_path);
    const uint64_t most = MostDataBytes();
    SendSignal(run.pid, SIGKILL);
    EXPECT_EQ(WaitFor(run, 60).exit_code, -1);
    EXPECT_TRUE(NobodyIsLeft());
    std::filesystem::remove_all(RunDir());
    return most;
  }
  // Trains in processes of at most `bytes` of memory each, to the end of the run.
  CommandEnd TrainWithin(uint64_t bytes, const std::string& job,
                         const std::vector<std::string>& args) {
    std::vector<std::string> all = {"prlimit", absl::StrCat("--data=", bytes),
                                    ProgramPath("deploy/satrap_cli"), "--install_dir=."};
    all.insert(all.end(), {"train", job, "--run_dir", RunDir()});
    all.insert(all.end(), args.begin(), args.end());
    return WaitFor(StartProgram(all), kSecondsToEnd);
  }
};

// The record has so many ids that their rows do not fit into the memory that the processes may
// have.
TEST_F(PoisonTest, ARecordThatKillsARoleEachTimeEndsTheRunWithItsCauses) {
  constexpr int kIds = 150000;                         // 940 kB of text, 310 MB of rows
  constexpr uint64_t kMoreBytes = uint64_t{96} << 20;  // enough for every other record
  const uint64_t bytes = BytesWithoutTheWideRecord() + kMoreBytes;
  const CommandEnd end = TrainWithin(bytes, WriteFilesAndJob(/*wide_record=*/kRecords - 1000, kIds),
                                     {"--set", "max_restarts=2"});
  EXPECT_EQ(end.exit_code, 1);
  const std::string death = "while it takes part in the run: no memory";
  EXPECT_THAT(end.err, AllOf(HasSubstr("embedding_"), HasSubstr(death), HasSubstr("max_restarts"),
                             HasSubstr("satrap resume")));
  EXPECT_GE(std::vector<std::string>(absl::StrSplit(end.err, death)).size(), 3u)
      << "it was restarted, and died of the same: " << end.err;
  EXPECT_TRUE(NobodyIsLeft());

  // The next processes have no limit, as on a machine with more memory. They continue from the
  // newest cut, or from the beginning if the record came before the first cut.
  ExpectFinished(Resume(), kRecords);
}

}  // namespace
}  // namespace satrap
