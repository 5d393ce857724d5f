#include "common/checkpoint/checked_text.h"

#include "common/file/testing/memory_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/run_log.pb.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckedTextTest : public testing::Test {
 protected:
  CheckedTextTest() {
    EXPECT_TRUE(disk_.CreateFolders("/run").ok());
    cut_.set_cut("cut_0001_000002");
    cut_.set_step(7);
    disk_.TakeOperations();
  }
  absl::Status Read(CutEntry* cut) { return ReadCheckedText("/run/cut", &disk_, cut); }

  MemoryFileSystem disk_;
  CutEntry cut_;
};

TEST_F(CheckedTextTest, IsReadBackAndIsSyncedWhenItIsWritten) {
  ASSERT_TRUE(WriteCheckedText("/run/cut", cut_, &disk_).ok());
  EXPECT_THAT(disk_.TakeOperations(),
              ElementsAre("create /run/cut", "append /run/cut", "sync /run/cut"));
  CutEntry read;
  ASSERT_TRUE(Read(&read).ok());
  EXPECT_EQ(read.SerializeAsString(), cut_.SerializeAsString());
}

TEST_F(CheckedTextTest, AFileWhoseSyncFailedIsRemoved) {
  disk_.SetHook([](const std::string& operation) {
    return operation == "sync /run/cut" ? absl::DataLossError("input/output error")
                                        : absl::OkStatus();
  });
  EXPECT_EQ(WriteCheckedText("/run/cut", cut_, &disk_).code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(disk_.Exists("/run/cut"));
}

TEST_F(CheckedTextTest, EachChangedByteIsDamage) {
  const std::string text = CheckedText(cut_);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    disk_.Put("/run/cut", damaged);
    CutEntry read;
    const absl::Status status = Read(&read);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i;
    EXPECT_THAT(status.message(), HasSubstr("/run/cut"));
  }
}

TEST_F(CheckedTextTest, AFileThatIsCutShortIsDamage) {
  const std::string text = CheckedText(cut_);
  for (size_t size = 0; size < text.size(); ++size) {
    disk_.Put("/run/cut", text.substr(0, size));
    CutEntry read;
    EXPECT_EQ(Read(&read).code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST_F(CheckedTextTest, AnotherMessageUnderTheNameIsDamage) {
  GenerationEntry other;
  other.set_cause("start");
  disk_.Put("/run/cut", CheckedText(other));
  CutEntry read;
  EXPECT_EQ(Read(&read).code(), absl::StatusCode::kDataLoss);
}

TEST_F(CheckedTextTest, AFileThatIsNotThereIsNotFound) {
  CutEntry read;
  EXPECT_EQ(Read(&read).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace satrap
