#include "deploy/pod/role_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "common/testing/temp_dir.h"
#include "common/thread/clock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int64_t kDrainMs = 30000;

class RoleLogTest : public testing::Test {
 protected:
  RoleLogTest() {
    echo_ = open(At("echo").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_GE(echo_, 0);
  }
  ~RoleLogTest() override {
    log_.reset();
    close(echo_);
  }
  std::string At(const std::string& name) const { return temp_.At(name); }
  std::string Read(const std::string& name) const { return TempDir::Read(At(name)); }
  void Open(const FileLimits& limits = FileLimits()) {
    auto log = RoleLog::Open(At("logs/role.log"), limits, echo_);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }
  static bool Await(const std::function<bool()>& is_so) {
    const int64_t deadline_ms = MonotonicMs() + kDrainMs;
    while (!is_so()) {
      if (MonotonicMs() > deadline_ms) return false;
      poll(nullptr, 0, 10);
    }
    return true;
  }
  void Print(const std::string& text) {
    ASSERT_EQ(write(log_->input(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  const TempDir temp_;
  int echo_ = -1;
  std::unique_ptr<RoleLog> log_;
};

TEST_F(RoleLogTest, WhatIsPrintedAndSaidGoesToTheLogAndToStdout) {
  Open();
  log_->Say("---- start 1 ----");
  log_->Drain(kDrainMs);
  Print("loading\n");
  log_->Drain(kDrainMs);
  log_->Say("it ended");
  log_->Drain(kDrainMs);
  EXPECT_EQ(Read("logs/role.log"), "---- start 1 ----\nloading\nit ended\n");
  EXPECT_EQ(Read("echo"), Read("logs/role.log"));
}

TEST_F(RoleLogTest, ALogThatIsThereIsContinued) {
  std::filesystem::create_directories(At("logs"));
  std::ofstream(At("logs/role.log")) << "before\n";
  Open();
  Print("after\n");
  log_->Drain(kDrainMs);
  EXPECT_EQ(Read("logs/role.log"), "before\nafter\n");
}

TEST_F(RoleLogTest, ALongLogIsKeptUnderItsLimitWithoutLosingALine) {
  FileLimits limits;
  limits.bytes = 10;
  limits.older = 2;
  Open(limits);
  for (const char* line : {"first 1\n", "second\n", "third 3\n", "fourth\n"}) {
    Print(line);
    log_->Drain(kDrainMs);
  }
  EXPECT_EQ(Read("logs/role.log"), "fourth\n");
  EXPECT_EQ(Read("logs/role.log.1"), "third 3\n");
  EXPECT_EQ(Read("logs/role.log.2"), "second\n");
  EXPECT_EQ(Read("echo"), "first 1\nsecond\nthird 3\nfourth\n");
}

TEST_F(RoleLogTest, AFolderThatCannotBeWrittenCostsTheLogAloneUntilItCan) {
  std::ofstream(At("logs")) << "no folder";
  Open();
  Print("lost\n");
  log_->Drain(kDrainMs);
  std::filesystem::remove(At("logs"));
  Print("kept\n");
  log_->Drain(kDrainMs);
  EXPECT_EQ(Read("logs/role.log"), "kept\n");
  EXPECT_EQ(Read("echo"), "lost\nkept\n");
}

TEST_F(RoleLogTest, TheLastErrorIsThatOfTheRoleWhichPrintedSinceItBegan) {
  Open();
  Print("error: of the one before\n");
  log_->Drain(kDrainMs);
  log_->BeginRole();
  Print("loading\n");
  log_->Drain(kDrainMs);
  EXPECT_EQ(log_->LastError(), "loading");
  Print("error: no such table\nended\n");
  log_->Say("error: this is the supervisor's");
  log_->Drain(kDrainMs);
  EXPECT_EQ(log_->LastError(), "error: no such table");
}

// The thread takes what is printed, and then waits for stdout for ever. Say, Drain and the
// destructor must return nevertheless. As long as the reader of stdout is there, the file does not
// have the line.
TEST_F(RoleLogTest, AStdoutThatNobodyReadsStopsNeitherSayNorDrainNorTheEnd) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const std::string page(4096, 'x');
  while (write(ends[1], page.data(), page.size()) > 0) {
  }
  // The pipe is full. Without O_NONBLOCK the next write to it blocks for ever.
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);
  close(echo_);
  echo_ = ends[1];
  Open();
  Print("printed\n");
  ASSERT_TRUE(Await([&] {
    int waiting = 1;
    return ioctl(log_->input(), FIONREAD, &waiting) == 0 && waiting == 0;
  })) << "the thread takes the line";
  for (int i = 0; i < 1000; ++i) log_->Say("said");
  log_->Drain(1);
  log_.reset();
  EXPECT_EQ(Read("logs/role.log"), "") << "the thread still waits for stdout";
  // A write to the pipe now fails, so the thread continues with the file and ends.
  const sighandler_t before = signal(SIGPIPE, SIG_IGN);
  close(ends[0]);
  EXPECT_TRUE(Await([&] { return Read("logs/role.log") == "printed\n"; }));
  signal(SIGPIPE, before);
}

}  // namespace
}  // namespace satrap
