#include "deploy/launcher/process/log_cutter.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/thread/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;

// Stands in for the files to cut. With `hang`, cutting a file blocks until Release. An object may
// outlive the test, as the cutter's thread may.
class Files {
 public:
  explicit Files(bool hang) : hangs_(hang) {}
  void Cut(const std::string& path) {
    MutexLock lock(&mutex_);
    begun_.push_back(path);
    changed_.NotifyAll();
    while (hangs_) changed_.Wait(&mutex_);
    ++ended_;
    changed_.NotifyAll();
  }
  void Release() {
    MutexLock lock(&mutex_);
    hangs_ = false;
    changed_.NotifyAll();
  }
  void AwaitBegun(size_t count) {
    MutexLock lock(&mutex_);
    while (begun_.size() < count) changed_.Wait(&mutex_);
  }
  std::vector<std::string> AwaitEnded(size_t count) {
    MutexLock lock(&mutex_);
    while (ended_ < count) changed_.Wait(&mutex_);
    return begun_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool hangs_ GUARDED_BY(mutex_);
  std::vector<std::string> begun_ GUARDED_BY(mutex_);
  size_t ended_ GUARDED_BY(mutex_) = 0;
};

LogCutter::CutFile Of(const std::shared_ptr<Files>& files) {
  return [files](const std::string& path) { files->Cut(path); };
}

TEST(LogCutter, CutsTheFilesInOrderEachTime) {
  const auto files = std::make_shared<Files>(/*hang=*/false);
  LogCutter cutter(Of(files));
  cutter.Cut({"a", "b"});
  EXPECT_THAT(files->AwaitEnded(2), ElementsAre("a", "b"));
  // Try until it succeeds: the thread may not have marked itself as idle yet.
  while (files->AwaitEnded(2).size() < 3) cutter.Cut({"c"});
  EXPECT_EQ(files->AwaitEnded(3)[2], "c");
}

TEST(LogCutter, OnADiskThatHangsNothingPilesUp) {
  const auto files = std::make_shared<Files>(/*hang=*/true);
  LogCutter cutter(Of(files));
  cutter.Cut({"a"});
  files->AwaitBegun(1);
  for (int i = 0; i < 100; ++i) cutter.Cut({"b"});
  files->Release();
  // What had piled up would come first.
  while (files->AwaitEnded(1).size() < 2) cutter.Cut({"c"});
  EXPECT_EQ(files->AwaitEnded(2)[1], "c");
}

TEST(LogCutter, ADiskThatHangsDoesNotHoldUpTheEnd) {
  const auto files = std::make_shared<Files>(/*hang=*/true);
  auto cutter = std::make_unique<LogCutter>(Of(files));
  cutter->Cut({"a"});
  files->AwaitBegun(1);
  std::promise<void> ended;
  std::thread end([&] {
    cutter.reset();
    ended.set_value();
  });
  EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  files->Release();
  end.join();
  EXPECT_THAT(files->AwaitEnded(1), ElementsAre("a"));
}

}  // namespace
}  // namespace satrap
