#include "deploy/launcher/process/side_thread.h"

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "common/testing/no_threads.h"
#include "common/thread/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;

// Makes tasks that block until Release. An object may outlive the test, as the thread may.
class Gate {
 public:
  void Pass(const std::string& name) {
    MutexLock lock(&mutex_);
    begun_.push_back(name);
    changed_.NotifyAll();
    while (!open_) changed_.Wait(&mutex_);
  }
  void Release() {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  std::vector<std::string> AwaitBegun(size_t count) {
    MutexLock lock(&mutex_);
    while (begun_.size() < count) changed_.Wait(&mutex_);
    return begun_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ GUARDED_BY(mutex_) = false;
  std::vector<std::string> begun_ GUARDED_BY(mutex_);
};

class SideThreadTest : public testing::Test {
 protected:
  SideThread::Task TaskOf(const std::string& name) const {
    return [gate = gate_, name] { gate->Pass(name); };
  }

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

TEST_F(SideThreadTest, RunsTasksInOrderAndSaysWhenAllAreDone) {
  SideThread thread(3);
  EXPECT_TRUE(thread.Await(0)) << "there is none";
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(thread.Post(TaskOf(name)));
  gate_->AwaitBegun(1);
  EXPECT_FALSE(thread.Await(1));
  gate_->Release();
  EXPECT_TRUE(thread.Await(60000));
  EXPECT_THAT(gate_->AwaitBegun(3), ElementsAre("a", "b", "c"));
}

TEST_F(SideThreadTest, TakesNoMoreTasksThanItMay) {
  SideThread thread(2);
  EXPECT_TRUE(thread.Post(TaskOf("a")));
  gate_->AwaitBegun(1);
  EXPECT_TRUE(thread.Post(TaskOf("b")));
  EXPECT_FALSE(thread.Post(TaskOf("c")));
  gate_->Release();
  EXPECT_TRUE(thread.Await(60000));
  EXPECT_TRUE(thread.Post(TaskOf("d")));
  EXPECT_THAT(gate_->AwaitBegun(3), ElementsAre("a", "b", "d"));
}

TEST_F(SideThreadTest, ATaskThatHangsDoesNotHoldUpTheEndAndTheNextIsDropped) {
  {
    SideThread thread(2);
    thread.Post(TaskOf("a"));
    gate_->AwaitBegun(1);
    thread.Post(TaskOf("b"));
  }
  gate_->Release();
  // The thread continues without the SideThread object. It refers to the gate until it has finished
  // the running task "a" and dropped the waiting task "b".
  for (int waited_ms = 0; gate_.use_count() > 1 && waited_ms < 60000; ++waited_ms) {
    poll(nullptr, 0, 1);
  }
  EXPECT_EQ(gate_.use_count(), 1);
  EXPECT_THAT(gate_->AwaitBegun(1), ElementsAre("a"));
}

TEST_F(SideThreadTest, WhereNoThreadCanBeStartedNoTaskIsTakenUntilOneCan) {
  gate_->Release();
  SideThread thread(1);
  {
    const NoThreads no_threads;
    EXPECT_FALSE(thread.Post(TaskOf("a")));
    EXPECT_TRUE(thread.Await(0)) << "there is none";
  }
  EXPECT_TRUE(thread.Post(TaskOf("b")));
  EXPECT_TRUE(thread.Await(60000));
  EXPECT_THAT(gate_->AwaitBegun(1), ElementsAre("b"));
}

}  // namespace
}  // namespace satrap
