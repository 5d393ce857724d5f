#include "deploy/launcher/kept_data_warnings.h"

#include <future>
#include <string>
#include <utility>

#include "common/config/testing/validation_check.h"
#include "common/file/testing/memory_file_system.h"
#include "common/testing/no_threads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRun[] = "/runs/a";
constexpr char kFile[] = "/runs/a/data_warnings.textproto";
constexpr int64_t kLongMs = 60000;

StatusAnswer Warning(const std::string& text) {
  StatusAnswer status;
  status.set_generation(1);
  status.add_roles()->mutable_loader()->add_warnings(text);
  return status;
}

// A status in which a loader has read labels that are all 1.
StatusAnswer EqualLabels(uint64_t generation) {
  StatusAnswer status;
  status.set_generation(generation);
  LabelRange* const range = status.add_roles()->mutable_loader()->add_labels();
  range->set_count(1000);
  range->set_least(1);
  range->set_largest(1);
  return status;
}

class KeptDataWarningsTest : public testing::Test {
 protected:
  KeptDataWarningsTest() { EXPECT_TRUE(disk_.CreateFolders(kRun).ok()); }

  // The warnings of a command that continues the run now.
  std::vector<std::string> KnownLater() {
    KeptDataWarnings later(kRun, /*has_begun=*/true, &disk_);
    EXPECT_TRUE(later.problem().ok()) << later.problem();
    later.TakeNew(EqualLabels(2));
    return later.All(job_);
  }
  static absl::Status EndOf(KeptDataWarnings* kept) {
    return kept->Close(/*at_end=*/true, kLongMs);
  }

  MemoryFileSystem disk_;  // outlives the threads, which each test waits for
  const JobConfig job_ = JobWithData(R"(
      csv { columns { name: 'y' kind: LABEL numeric_label: true }
            columns { name: 'user' kind: ID } }
      train_files: 'train.csv'
      features { name: 'user' table: 'ids' })");
};

TEST_F(KeptDataWarningsTest, AWarningComesBackAfterAResumeAndIsNotNewThen) {
  KeptDataWarnings first(kRun, /*has_begun=*/false, &disk_);
  EXPECT_THAT(first.TakeNew(Warning("x is far")), ElementsAre("x is far"));
  EXPECT_THAT(first.TakeNew(Warning("x is far")), IsEmpty());
  ASSERT_TRUE(EndOf(&first).ok());
  KeptDataWarnings later(kRun, /*has_begun=*/true, &disk_);
  EXPECT_THAT(later.TakeNew(Warning("x is far")), IsEmpty());
  EXPECT_THAT(later.TakeNew(Warning("y is far")), ElementsAre("y is far"));
  EXPECT_THAT(later.All(job_), ElementsAre("x is far", "y is far"));
  ASSERT_TRUE(EndOf(&later).ok());
}

TEST_F(KeptDataWarningsTest, LabelsAreKnownAfterAnEndAndNotAfterAKill) {
  {
    KeptDataWarnings first(kRun, /*has_begun=*/false, &disk_);
    first.TakeNew(Warning("x is far"));
    first.TakeNew(EqualLabels(1));
    ASSERT_TRUE(EndOf(&first).ok());
  }
  EXPECT_THAT(KnownLater(), ElementsAre("x is far", HasSubstr("all 2,000 training labels are 1")));
  EXPECT_THAT(KnownLater(), ElementsAre("x is far"))
      << "the command before was killed: it has seen labels that nobody has kept";
}

TEST_F(KeptDataWarningsTest, OnAFullDiskAKillLeavesNoLabelsThatAreTakenForAll) {
  {
    KeptDataWarnings first(kRun, /*has_begun=*/false, &disk_);
    first.TakeNew(EqualLabels(1));
    ASSERT_TRUE(EndOf(&first).ok());
  }
  disk_.SetHook([](const std::string& operation) {
    return operation.rfind("create", 0) == 0 ? absl::ResourceExhaustedError("no space left")
                                             : absl::OkStatus();
  });
  const KeptDataWarnings on_a_full_disk(kRun, /*has_begun=*/true, &disk_);
  disk_.SetHook(nullptr);
  EXPECT_THAT(KnownLater(), IsEmpty());
}

TEST_F(KeptDataWarningsTest, ADamagedFileIsNamedAndNothingIsSaidOfAllLabels) {
  disk_.Put(kFile, "warnings: 'x is far'\n# crc32c 00000000\n");
  KeptDataWarnings later(kRun, /*has_begun=*/true, &disk_);
  EXPECT_EQ(later.problem().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(later.problem().message()), HasSubstr(kFile));
  later.TakeNew(EqualLabels(2));
  EXPECT_THAT(later.All(job_), IsEmpty());
  later.TakeNew(Warning("y is far"));
  ASSERT_TRUE(EndOf(&later).ok());
  EXPECT_THAT(KnownLater(), ElementsAre("y is far")) << "it is replaced";
}

TEST_F(KeptDataWarningsTest, WithoutAFileOnlyARunThatBeginsIsSeenFromItsBeginning) {
  KeptDataWarnings older_build(kRun, /*has_begun=*/true, &disk_);
  EXPECT_TRUE(older_build.problem().ok());
  older_build.TakeNew(EqualLabels(2));
  EXPECT_THAT(older_build.All(job_), IsEmpty());
  KeptDataWarnings begins(kRun, /*has_begun=*/false, &disk_);
  begins.TakeNew(EqualLabels(1));
  EXPECT_THAT(begins.All(job_), ElementsAre(HasSubstr("all 1,000 training labels are 1")));
}

TEST_F(KeptDataWarningsTest, WhatAFullDiskDoesNotTakeIsSavedOnceThereIsRoom) {
  disk_.SetHook([](const std::string& operation) {
    return operation.rfind("append", 0) == 0 ? absl::ResourceExhaustedError("no space left")
                                             : absl::OkStatus();
  });
  KeptDataWarnings kept(kRun, /*has_begun=*/false, &disk_);
  EXPECT_THAT(kept.TakeNew(Warning("x is far")), ElementsAre("x is far"));
  EXPECT_EQ(kept.Close(/*at_end=*/false, kLongMs).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(disk_.Exists(kFile));
  disk_.SetHook(nullptr);
  EXPECT_THAT(kept.TakeNew(Warning("x is far")), IsEmpty());
  ASSERT_TRUE(kept.Close(/*at_end=*/false, kLongMs).ok());
  EXPECT_THAT(KnownLater(), ElementsAre("x is far"));
}

TEST_F(KeptDataWarningsTest, WhatNoThreadCouldWriteIsToldAndWrittenOnceOneCanBeStarted) {
  KeptDataWarnings kept(kRun, /*has_begun=*/false, &disk_);
  {
    const NoThreads no_threads;
    EXPECT_THAT(kept.TakeNew(Warning("x is far")), ElementsAre("x is far"));
    const absl::Status closed = kept.Close(/*at_end=*/false, kLongMs);
    EXPECT_EQ(closed.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(closed.message()),
                AllOf(HasSubstr(kFile), HasSubstr("no thread could be started")));
    EXPECT_FALSE(disk_.Exists(kFile));
  }
  ASSERT_TRUE(kept.Close(/*at_end=*/false, kLongMs).ok());
  EXPECT_THAT(KnownLater(), ElementsAre("x is far"));
}

TEST_F(KeptDataWarningsTest, ADiskThatHangsHoldsUpNobody) {
  std::promise<void> goes_on;
  disk_.SetHook([&goes_on, hung = false](const std::string& operation) mutable {
    if (operation.rfind("sync ", 0) == 0 && !std::exchange(hung, true)) {
      goes_on.get_future().wait();
    }
    return absl::OkStatus();
  });
  KeptDataWarnings kept(kRun, /*has_begun=*/false, &disk_);
  EXPECT_THAT(kept.TakeNew(Warning("x is far")), ElementsAre("x is far"));
  EXPECT_THAT(kept.TakeNew(Warning("y is far")), ElementsAre("y is far"));
  EXPECT_EQ(kept.Close(/*at_end=*/true, 1).code(), absl::StatusCode::kDeadlineExceeded);
  goes_on.set_value();
  ASSERT_TRUE(EndOf(&kept).ok());
  EXPECT_THAT(KnownLater(), ElementsAre("x is far", "y is far", HasSubstr("training labels are")));
}

}  // namespace
}  // namespace satrap
