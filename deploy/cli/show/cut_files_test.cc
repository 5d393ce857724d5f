#include "deploy/cli/show/cut_files.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/config/text_format.h"
#include "common/numeric/crc32c.h"
#include "deploy/launcher/testing/logged_run.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class CutFilesTest : public LoggedRunTest {
 protected:
  std::string CutDir(const std::string& name) const { return CheckpointsDir(dir_) + "/" + name; }
  // Writes a cut with two files of rows and the dense network, but no entry in the log.
  CheckpointManifest WriteCut(const std::string& folder) {
    fs::create_directories(folder);
    CheckpointManifest manifest;
    EXPECT_TRUE(ParseText(R"(
        job_name: 'demo' step: 1200 generation: 2 cut: 4
        tables { name: 'users' id: 3 fingerprint: 255 rows: 12 }
        position { epoch: 1 step: 1200 samples: 307200
                   best { values { auc: 0.75 logloss: 0.5 } step: 900 cut: 'cut_0001_000003' } }
        ledger { epochs { epoch: 0 rows: 300000 bad_records: 3 empty_lines: 1 done_splits: [0, 4] }
                 epochs { epoch: 1 rows: 7200 splits { split: 2 rows: 7200 } } })",
                          "manifest", &manifest)
                    .ok());
    manifest.set_version(kManifestVersion);
    manifest.set_order_fingerprint(7);
    // Take generation and number from the folder's name if it is a cut's name. Otherwise the
    // defaults remain: number 4 of generation 2.
    const auto id = ParseCutName(fs::path(folder).filename().string());
    if (id.has_value()) {
      manifest.set_generation(id->generation);
      manifest.set_cut(id->number);
    }
    for (const std::string name : {"a.rows", "b.rows"}) {
      const std::string content = "rows of " + name;
      std::ofstream(absl::StrCat(folder, "/", name)) << content;
      SavedFile* file = manifest.add_table_files();
      file->set_name(name);
      file->set_table(3);
      file->set_bytes(content.size());
      file->set_crc32c(Crc32c(content));
    }
    std::ofstream(folder + "/dense.bin") << "dense";
    manifest.set_dense_file("dense.bin");
    manifest.set_dense_bytes(5);
    manifest.set_dense_crc32c(Crc32c("dense"));
    EXPECT_TRUE(WriteManifest(folder, manifest).ok());
    return manifest;
  }
  std::string VerifyError(const std::string& folder) {
    return std::string(VerifyCut(folder, DiskFileSystem()).status().message());
  }
};

TEST_F(CutFilesTest, ListsCommittedCutsWithAgeAndMarksAndWhatWasNeverCommitted) {
  for (const char* cut : {"cut_0001_000003", "cut_0002_000004", "cut_0002_000005"}) {
    WriteCut(CutDir(cut));
  }
  fs::create_directory_symlink("cut_0001_000003", CutDir("best"));
  fs::create_directory_symlink("cut_0002_000004", CutDir("latest"));
  Append("generation { generation: 1 job { checkpoint { keep: 2 } } }");
  Append("unix_ms: 1000 cut { generation: 1 cut: 'cut_0001_000001' step: 100 }");
  Append("unix_ms: 2000 cut { generation: 1 cut: 'cut_0001_000003' step: 1200 bytes: 1500 }");
  Append("unix_ms: 9000 cut { generation: 2 cut: 'cut_0002_000004' step: 1200 last: true }");
  const auto text = ListCuts(dir_, 12000);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("\ncut_0001_000003             1        1,200     1.5 KB         "
                               "10.0 s  best\n"));
  EXPECT_THAT(*text, HasSubstr("3.0 s  latest last\n"));
  EXPECT_THAT(*text, HasSubstr("\ncut_0002_000005 "));
  EXPECT_THAT(*text, HasSubstr("not committed\n"));
  EXPECT_THAT(*text, HasSubstr("(1 older cut is removed: checkpoint.keep)\n"));
  EXPECT_THAT(*text, Not(HasSubstr("cut_0001_000001")));
}

TEST_F(CutFilesTest, ListsWithWhichCutAGenerationLeftAndForWhat) {
  const char* const reasons[] = {"STOP", "SCALE", "MOVE"};
  Append("generation { generation: 1 job { checkpoint { keep: 9 } } }");
  for (int i = 0; i < 3; ++i) {
    const std::string cut = absl::StrCat("cut_0001_00000", i + 1);
    WriteCut(CutDir(cut));
    Append(absl::StrCat("unix_ms: 9000 cut { generation: 1 cut: '", cut,
                        "' step: 1200 leave: true left_for: ", reasons[i], " }"));
  }
  const auto text = ListCuts(dir_, 12000);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, AllOf(HasSubstr("3.0 s  stop\n"), HasSubstr("3.0 s  scale\n"),
                           HasSubstr("3.0 s  move\n")));
}

TEST_F(CutFilesTest, ACompactedLogListsTheSameCuts) {
  for (const char* cut : {"cut_0001_000003", "cut_0002_000004"}) WriteCut(CutDir(cut));
  Append("generation { generation: 1 job { checkpoint { keep: 2 } } }");
  for (const char* cut : {"cut_0001_000001", "cut_0001_000002", "cut_0001_000003"}) {
    Append(absl::StrCat("unix_ms: 2000 cut { generation: 1 cut: '", cut, "' step: 1200 }"));
  }
  Append("generation { generation: 2 cut: 'cut_0001_000003' job { checkpoint { keep: 3 } } }");
  Append("unix_ms: 9000 cut { generation: 2 cut: 'cut_0002_000004' step: 1200 last: true }");
  const auto before = ListCuts(dir_, 12000);
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_THAT(*before, HasSubstr("(2 older cuts are removed"));
  auto log = RunLog::Open(dir_, DiskFileSystem());
  ASSERT_TRUE(log.ok() && log->Compact(1).ok() && log->RemoveCompacted(100).ok());
  EXPECT_EQ(*ListCuts(dir_, 12000), *before);
  EXPECT_TRUE(FindCutOfRun(dir_, "cut_0001_000003").ok()) << "to go on from";
}

TEST_F(CutFilesTest, ARunThatHasJustBegunHasNoCut) {
  Append("generation { generation: 1 }");
  EXPECT_EQ(ListCuts(dir_, 0).value_or(""), "run " + dir_ + " has no cut yet\n");
}

TEST_F(CutFilesTest, DescribesWhatACutHolds) {
  const CheckpointManifest manifest = WriteCut(CutDir("cut_0002_000004"));
  const std::string text = DescribeCut("FOLDER", manifest, nullptr);
  for (const char* line :
       {"of           job 'demo', generation 2, number 4; format version ",
        "position     step 1,200, epoch 2, 307,200 samples; training continues\n",
        "order        fingerprint 0000000000000007\n",
        "table        users: id 3, 12 rows, 28 B in 2 files, fingerprint 00000000000000ff\n",
        "dense        dense.bin, 5 B\n",
        "best         step 900 (cut_0001_000003): AUC 0.75000, logloss 0.50000\n",
        "ledger       epoch 1: 5 splits done, 0 open, 300,000 records, 3 bad, 1 empty line\n",
        "\n             epoch 2: 0 splits done, 1 open, 7,200 records, 0 bad, 0 empty lines\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  JobConfig job;
  ASSERT_TRUE(
      ParseText(R"(tables { id: 3 segments { name: 'embedding' dim: 8 optimizer { adam {} } }
                                    segments { name: 'linear' dim: 1 optimizer { sgd {} } } }
                           dense_optimizer { adagrad {} })",
                "job", &job)
          .ok());
  const std::string with_job = DescribeCut("FOLDER", manifest, &job);
  EXPECT_THAT(with_job, HasSubstr("             embedding dim 8 adam, linear dim 1 sgd\n"));
  EXPECT_THAT(with_job, HasSubstr("dense        dense.bin, 5 B, adagrad\n"));
}

TEST_F(CutFilesTest, VerifiesEveryFile) {
  const std::string folder = CutDir("cut_0002_000004");
  WriteCut(folder);
  const auto good = VerifyCut(folder, DiskFileSystem());
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_THAT(*good, EndsWith(": 3 files with 33 B are undamaged"));
  std::ofstream(folder + "/a.rows") << "rows of A.rows";
  std::ofstream(folder + "/dense.bin") << "dens";
  fs::remove(folder + "/b.rows");
  const std::string error = VerifyError(folder);
  EXPECT_THAT(error, AllOf(HasSubstr("a.rows is damaged: its checksum is "),
                           HasSubstr("/b.rows: No such file or directory"),
                           HasSubstr("/dense.bin has 4 bytes, but was written with 5")));
  std::ofstream(folder + "/manifest", std::ios::app) << "x";
  EXPECT_THAT(VerifyError(folder), HasSubstr("/manifest is damaged"));
  EXPECT_THAT(VerifyError(dir_), HasSubstr("holds no saved model"));
}

TEST_F(CutFilesTest, SaysWhatIsWrongWithACutThatIsNotWhole) {
  for (const char* cut : {"cut_0001_000003", "cut_0002_000004"}) WriteCut(CutDir(cut));
  Append("generation { generation: 1 job { checkpoint { keep: 3 } } }");
  Append("cut { generation: 1 cut: 'cut_0001_000001' step: 1200 }");
  Append("cut { generation: 1 cut: 'cut_0001_000002' step: 1200 }");
  Append("cut { generation: 1 cut: 'cut_0001_000003' step: 1200 }");
  Append("cut { generation: 2 cut: 'cut_0002_000004' step: 1200 }");
  std::ofstream(CutDir("cut_0001_000003") + "/a.rows", std::ios::app) << "more";
  const std::string text = ListCuts(dir_, 0).value_or("");
  EXPECT_THAT(text, HasSubstr("  missing: " + CutDir("cut_0001_000002") + "\n"));
  EXPECT_THAT(text, HasSubstr("  damaged: " + CutDir("cut_0001_000003") +
                              "/a.rows has 18 bytes, but was written with 14\n"));
  EXPECT_THAT(text, HasSubstr("(1 older cut is removed: checkpoint.keep)\n"));
  // A folder without a manifest is a cut that retention is removing: it removes the manifest first.
  fs::create_directories(CutDir("cut_0001_000001"));
  EXPECT_EQ(ListCuts(dir_, 0).value_or(""), text) << "it is being removed";
  fs::remove_all(CutDir("cut_0002_000004"));
  EXPECT_THAT(ListCuts(dir_, 0).value_or(""),
              HasSubstr("  missing: " + CutDir("cut_0002_000004") + "\n"));
}

TEST_F(CutFilesTest, VerifiesThatTheLogNamesTheCut) {
  const std::string folder = CutDir("cut_0002_000004");
  WriteCut(folder);
  Append("cut { generation: 2 cut: 'cut_0002_000004' step: 1100 }");
  auto log = RunLog::Open(dir_, DiskFileSystem());
  ASSERT_TRUE(log.ok());
  const auto other = VerifyCut(folder, DiskFileSystem(), &*log);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(other.status().message(), HasSubstr("is not the cut that the run's log names"));
  WriteCut(CutDir("cut_0002_000005"));
  EXPECT_EQ(VerifyCut(CutDir("cut_0002_000005"), DiskFileSystem(), &*log).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(VerifyCut(folder, DiskFileSystem()).ok());
}

TEST_F(CutFilesTest, ARunGoesOnOnlyFromCutsThatItsLogCommits) {
  WriteCut(CutDir("cut_0001_000003"));
  WriteCut(CutDir("cut_0002_000009"));
  WriteCut(dir_ + "/elsewhere");
  fs::create_directory_symlink("cut_0001_000003", CutDir("best"));
  Append("cut { generation: 1 cut: 'cut_0001_000003' step: 1200 }");
  Append("cut { generation: 1 cut: 'cut_0001_000004' step: 1300 }");
  for (const std::string& typed :
       {std::string("cut_0001_000003"), std::string("best"), CutDir("cut_0001_000003")}) {
    const auto found = FindCutOfRun(dir_, typed);
    ASSERT_TRUE(found.ok()) << typed << ": " << found.status();
    EXPECT_EQ(found->cut(), "cut_0001_000003");
    EXPECT_EQ(found->step(), 1200u);
  }
  const std::string hint = "; `satrap checkpoint list " + dir_ + "` lists those to continue from";
  EXPECT_EQ(FindCutOfRun(dir_, "foo").status().message(),
            "run " + dir_ + " has no cut 'foo'" + hint);
  EXPECT_EQ(FindCutOfRun(dir_, "cut_0002_000009").status().message(),
            "run " + dir_ + " has no cut 'cut_0002_000009'" + hint)
      << "it was not committed";
  EXPECT_EQ(FindCutOfRun(dir_, "cut_0001_000004").status().message(),
            "cut cut_0001_000004 is missing: " + CutDir("cut_0001_000004") + hint);
  EXPECT_THAT(FindCutOfRun(dir_, dir_ + "/elsewhere").status().message(),
              HasSubstr("a run continues only from its own cuts"));
}

TEST_F(CutFilesTest, ACutIsNamedByItsFolderOrItsRun) {
  WriteCut(CutDir("cut_0001_000003"));
  fs::create_directory_symlink("cut_0001_000003", CutDir("latest"));
  for (const std::string& typed : {CutDir("cut_0001_000003"), CutDir("latest"), dir_}) {
    EXPECT_EQ(FindCutFolder(typed).value_or(""), CutDir("cut_0001_000003")) << typed;
  }
  EXPECT_THAT(FindCutFolder(dir_ + "/nothing").status().message(), HasSubstr("no cut in "));
}

TEST_F(CutFilesTest, VerifiesEachPartOfAFileThatTablesShare) {
  const std::string folder = CutDir("cut_0002_000004");
  CheckpointManifest manifest = WriteCut(folder);
  const std::string first = "rows of one table", second = "and of another";
  std::ofstream(folder + "/a.rows") << first << second;
  manifest.clear_table_files();
  for (const std::string& part : {first, second}) {
    SavedFile* file = manifest.add_table_files();
    file->set_name("a.rows");
    file->set_bytes(part.size());
    file->set_crc32c(Crc32c(part));
  }
  ASSERT_TRUE(WriteManifest(folder, manifest).ok());
  EXPECT_EQ(VerifyError(folder), "");
  std::ofstream(folder + "/a.rows") << first << "or of another!";
  EXPECT_THAT(VerifyError(folder), HasSubstr("a.rows is damaged"));
  std::ofstream(folder + "/a.rows") << first;
  EXPECT_THAT(VerifyError(folder), HasSubstr("was written with 31"));
}

TEST_F(CutFilesTest, ACutThatIsVerifiedIsPinned) {
  const std::string folder = CutDir("cut_0002_000004");
  WriteCut(folder);
  {
    const auto removal = LockToRemoveCut(folder, DiskFileSystem());
    ASSERT_TRUE(removal.ok());
    EXPECT_TRUE(absl::IsNotFound(VerifyCut(folder, DiskFileSystem()).status()));
  }
  EXPECT_EQ(VerifyError(folder), "");
  const absl::Status removed = FindCutFolder(CutDir("cut_0002_000003")).status();
  EXPECT_THAT(std::string(removed.message()),
              HasSubstr("name the run: " + fs::path(dir_).lexically_normal().string()));
}

}  // namespace
}  // namespace satrap
