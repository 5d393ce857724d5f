// Uses scripts in place of the broker's script. Only `satrap demo --kafka` starts a real broker.

#include "deploy/cli/kafka_demo/kafka_demo_broker.h"

#include <poll.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/thread/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The first lines of a script. They write its address to a file and rename that into place, as the
// real script does, so that no reader sees an empty file.
constexpr char kGivesAddress[] =
    "mkdir -p \"$1\"; echo 127.0.0.1:7 >\"$1/new\"; mv \"$1/new\" \"$1/bootstrap\"; ";
std::string Serves() { return absl::StrCat(kGivesAddress, "exec sleep 1000"); }

// Whether a process has ended; it may still be a zombie.
bool IsGone(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos || text[name_end + 2] == 'Z';
}

class KafkaDemoBrokerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = ::testing::TempDir() + "kafka_demo.XXXXXX";
    ASSERT_NE(mkdtemp(dir_.data()), nullptr);
    auto folder = RunFolder::CreateAt(dir_ + "/run");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *std::move(folder);
  }
  void TearDown() override {
    folder_.reset();
    fs::remove_all(dir_);
  }

  absl::StatusOr<std::unique_ptr<KafkaDemoBroker>> Start(const std::string& script) {
    fs::create_directories(dir_ + "/tests/kafka");
    const std::string path = dir_ + "/tests/kafka/broker";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    chmod(path.c_str(), 0755);
    return KafkaDemoBroker::Start(*folder_, dir_, {"log.retention.bytes=5"});
  }

  std::string dir_;
  std::unique_ptr<RunFolder> folder_;
};

TEST_F(KafkaDemoBrokerTest, ABrokerServesUntilTheObjectIsGone) {
  pid_t pid = 0;
  {
    const auto broker = Start(Serves());
    ASSERT_TRUE(broker.ok()) << broker.status();
    EXPECT_EQ((*broker)->address(), "127.0.0.1:7");
    EXPECT_EQ((*broker)->Problem(), "");
    pid = (*broker)->pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(KafkaDemoBrokerTest, ItsPropertiesAreThoseOfTheDemo) {
  const auto broker = Start(std::string("echo \"$2\" >") + dir_ + "/properties; " + Serves());
  ASSERT_TRUE(broker.ok()) << broker.status();
  std::string properties;
  std::getline(std::ifstream(dir_ + "/properties"), properties);
  EXPECT_EQ(properties, "log.retention.bytes=5");
}

TEST_F(KafkaDemoBrokerTest, WithoutTheJarsTheErrorSaysHowToGetThem) {
  const absl::Status status = Start("exit 3").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("run ./setup kafka"));
}

TEST_F(KafkaDemoBrokerTest, ABrokerThatEndsSaysWhyByItsLog) {
  const absl::Status status = Start("echo 'no memory' >&2; exit 1").status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("the Kafka broker exited with code 1: no memory"),
                    HasSubstr("logs/kafka_broker.log")));
}

TEST_F(KafkaDemoBrokerTest, ABrokerThatIsKilledWhileTheRunTrainsIsAProblem) {
  const auto broker = Start(Serves());
  ASSERT_TRUE(broker.ok()) << broker.status();
  kill((*broker)->pid(), SIGKILL);
  while ((*broker)->Problem().empty()) poll(nullptr, 0, 5);
  EXPECT_THAT((*broker)->Problem(), HasSubstr("was killed by signal 9"));
}

TEST_F(KafkaDemoBrokerTest, WhatTheBrokersScriptHasStartedEndsWithIt) {
  const std::string script = "sleep 1000 & echo $! >" + dir_ + "/pid; " + kGivesAddress + "wait";
  pid_t pid = 0;
  {
    const auto broker = Start(script);
    ASSERT_TRUE(broker.ok()) << broker.status();
    std::ifstream(dir_ + "/pid") >> pid;
    ASSERT_GT(pid, 0);
    EXPECT_EQ(kill(pid, 0), 0);
  }
  // The process is gone only when its new parent has reaped it.
  const int64_t deadline_ms = MonotonicMs() + 10000;
  while (!IsGone(pid) && MonotonicMs() < deadline_ms) poll(nullptr, 0, 5);
  EXPECT_TRUE(IsGone(pid));
}

TEST_F(KafkaDemoBrokerTest, ASignalEndsTheWait) {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigprocmask(SIG_BLOCK, &interrupt, nullptr);
  raise(SIGINT);
  const absl::Status status = Start("exec sleep 1000").status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(status.message(), "stopped by Interrupt");
  sigprocmask(SIG_UNBLOCK, &interrupt, nullptr);
}

}  // namespace
}  // namespace satrap
