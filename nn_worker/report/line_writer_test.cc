#include "nn_worker/report/line_writer.h"

#include <atomic>
#include <vector>

#include "common/thread/mutex.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// A disk that hangs while the test holds it.
class FakeDisk {
 public:
  bool Write(absl::string_view line) {
    MutexLock lock(&mutex_);
    ++begun_;
    changed_.NotifyAll();
    while (held_) changed_.Wait(&mutex_);
    if (full_) return false;
    lines_.emplace_back(line);
    return true;
  }

  void Hold(bool held) {
    MutexLock lock(&mutex_);
    held_ = held;
    changed_.NotifyAll();
  }
  void Fill() {
    MutexLock lock(&mutex_);
    full_ = true;
  }
  void AwaitWrites(int writes) {
    MutexLock lock(&mutex_);
    while (begun_ < writes) changed_.Wait(&mutex_);
  }
  std::vector<std::string> lines() {
    MutexLock lock(&mutex_);
    return lines_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool held_ GUARDED_BY(mutex_) = false;
  bool full_ GUARDED_BY(mutex_) = false;
  int begun_ GUARDED_BY(mutex_) = 0;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
};

class LineWriterTest : public testing::Test {
 protected:
  std::unique_ptr<LineWriter> NewWriter() {
    return std::make_unique<LineWriter>(
        [disk = disk_](absl::string_view line) { return disk->Write(line); },
        [now_ms = now_ms_] { return now_ms->load(); });
  }

  const std::shared_ptr<FakeDisk> disk_ = std::make_shared<FakeDisk>();
  const std::shared_ptr<std::atomic<int64_t>> now_ms_ = std::make_shared<std::atomic<int64_t>>(0);
};

TEST_F(LineWriterTest, LinesAreWrittenInTheirOrderAndAllBeforeTheEnd) {
  std::vector<std::string> expected;
  {
    const auto writer = NewWriter();
    for (int i = 0; i < 100; ++i) {
      expected.push_back(std::to_string(i));
      writer->Append(expected.back());
    }
  }
  EXPECT_EQ(disk_->lines(), expected);
}

TEST_F(LineWriterTest, NobodyWaitsForADiskThatHangsAndThatItDoesIsKnown) {
  disk_->Hold(true);
  const auto writer = NewWriter();
  writer->Append("first");
  disk_->AwaitWrites(1);
  writer->Append("second");  // would wait here for ever
  EXPECT_EQ(writer->trouble().hangs_seconds, 0) << "a slow write is no trouble";
  *now_ms_ += 12000;
  EXPECT_EQ(writer->trouble().hangs_seconds, 12);
  disk_->Hold(false);
  disk_->AwaitWrites(2);
  EXPECT_EQ(writer->trouble().hangs_seconds, 0);
  EXPECT_EQ(writer->trouble().dropped, 0u);
}

TEST_F(LineWriterTest, AFullQueueDropsLinesAndCountsThem) {
  disk_->Hold(true);
  {
    const auto writer = NewWriter();
    writer->Append("first");
    disk_->AwaitWrites(1);
    for (size_t i = 0; i < LineWriter::kMostLines + 3; ++i) writer->Append("more");
    EXPECT_EQ(writer->trouble().dropped, 3u);
    disk_->Hold(false);
  }
  EXPECT_EQ(disk_->lines().size(), LineWriter::kMostLines + 1);
}

TEST_F(LineWriterTest, ALineThatCannotBeWrittenIsCountedAsWell) {
  disk_->Fill();
  const auto writer = NewWriter();
  writer->Append("first");
  writer->Append("second");
  disk_->AwaitWrites(2);
  EXPECT_GE(writer->trouble().dropped, 1u) << "the second may be under way";
}

}  // namespace
}  // namespace satrap
