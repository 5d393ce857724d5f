#include "deploy/cli/run_console.h"

#include <memory>
#include <string>

#include "common/thread/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int64_t kLongMs = 60000;

// A terminal that can be paused, as by Ctrl-S. It may outlive the test, because the console's
// thread, which writes to it, may do so.
class Terminal {
 public:
  void Write(const std::string& text) {
    MutexLock lock(&mutex_);
    ++writes_;
    changed_.NotifyAll();
    while (held_) changed_.Wait(&mutex_);
    text_ += text;
  }
  void Hold(bool held) {
    MutexLock lock(&mutex_);
    held_ = held;
    changed_.NotifyAll();
  }
  void AwaitWrite() {
    MutexLock lock(&mutex_);
    while (writes_ == 0) changed_.Wait(&mutex_);
  }
  std::string text() {
    MutexLock lock(&mutex_);
    return text_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool held_ GUARDED_BY(mutex_) = false;
  int writes_ GUARDED_BY(mutex_) = 0;
  std::string text_ GUARDED_BY(mutex_);
};

class RunConsoleTest : public testing::Test {
 protected:
  std::unique_ptr<RunConsole> NewConsole() const {
    return std::make_unique<RunConsole>(
        [terminal = terminal_](const std::string& text) { terminal->Write(text); },
        /*is_terminal=*/true);
  }
  static StatusAnswer Training(uint64_t step) {
    StatusAnswer status;
    status.set_state(RUNNING);
    status.mutable_train()->set_phase("training");
    status.mutable_train()->set_step(step);
    return status;
  }

  const std::shared_ptr<Terminal> terminal_ = std::make_shared<Terminal>();
};

TEST_F(RunConsoleTest, MessagesFollowTheProgressLineOnLinesOfTheirOwn) {
  const auto console = NewConsole();
  console->ShowProgress(Training(7), 0);
  console->Say("warning: x is far");
  console->Say("y");
  ASSERT_TRUE(console->Drain(kLongMs));
  EXPECT_THAT(terminal_->text(), StartsWith("\r"));
  EXPECT_THAT(terminal_->text(), HasSubstr("step 7"));
  EXPECT_THAT(terminal_->text(), EndsWith("\nsatrap: warning: x is far\nsatrap: y\n"));
}

TEST_F(RunConsoleTest, ATerminalThatIsHeldHoldsUpNobodyAndGetsTheMessagesLater) {
  terminal_->Hold(true);
  const auto console = NewConsole();
  console->Say("first");
  terminal_->AwaitWrite();
  console->Say("second");
  for (uint64_t step = 1; step <= 100; ++step) {
    console->ShowProgress(Training(step), static_cast<int64_t>(step) * 1000);
  }
  console->Say("third");
  EXPECT_FALSE(console->Drain(1));
  terminal_->Hold(false);
  ASSERT_TRUE(console->Drain(kLongMs));
  EXPECT_THAT(terminal_->text(), StartsWith("satrap: first\nsatrap: second\n"));
  EXPECT_THAT(terminal_->text(), EndsWith("satrap: third\n"));
  EXPECT_THAT(terminal_->text(), Not(HasSubstr("step 100"))) << "old progress helps nobody";
}

TEST_F(RunConsoleTest, MessagesThatWaitAreBoundedAndThoseLeftOutAreCounted) {
  terminal_->Hold(true);
  const auto console = NewConsole();
  console->Say("first");
  terminal_->AwaitWrite();
  const std::string long_message(RunConsole::kMostBytes / 4, 'x');
  for (int i = 0; i < 5; ++i) console->Say(long_message);
  terminal_->Hold(false);
  ASSERT_TRUE(console->Drain(kLongMs));
  EXPECT_LT(terminal_->text().size(), RunConsole::kMostBytes + 200);
  EXPECT_THAT(terminal_->text(),
              EndsWith("satrap: 2 messages could not be written here and are left out\n"));
}

TEST_F(RunConsoleTest, ATerminalThatIsHeldAtTheEndDoesNotHoldUpTheEnd) {
  terminal_->Hold(true);
  {
    const auto console = NewConsole();
    console->Say("first");
    terminal_->AwaitWrite();
    console->Say("second");
  }
  terminal_->Hold(false);
}

}  // namespace
}  // namespace satrap
