#include "deploy/launcher/process/log_cutter.h"

#include <memory>
#include <string>
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

TEST(LogCutter, ADiskThatHangsHoldsUpNobodyAndNothingPilesUp) {
  const auto files = std::make_shared<Files>(/*hang=*/true);
  {
    LogCutter cutter(Of(files));
    cutter.Cut({"a"});
    files->AwaitBegun(1);
    for (int i = 0; i < 100; ++i) cutter.Cut({"b"});
  }
  files->Release();
  EXPECT_THAT(files->AwaitEnded(1), ElementsAre("a"))
      << "neither the calls nor the destructor has waited";
}

}  // namespace
}  // namespace satrap
