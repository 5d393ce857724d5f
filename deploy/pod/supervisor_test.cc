#include "deploy/pod/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "common/file/file_history.h"
#include "common/refusal/refusal.h"
#include "common/role/ending.h"
#include "common/testing/temp_dir.h"
#include "common/thread/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kPatienceMs = 60000;

// Each test runs a supervisor in a process of its own; the role is a script.
class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    options_.role = EMBEDDING_PS;
    options_.index = 1;
    options_.ending_path = At("ending");
    options_.termination_log = At("message");
    options_.run_dir = At("run");
    options_.max_restarts = 10;
  }
  ~SupervisorTest() override {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  std::string At(const std::string& name) const { return temp_.At(name); }
  std::string Read(const std::string& name) const { return TempDir::Read(At(name)); }
  // Each start of the script adds a line with its arguments to the file "starts". A script can call
  // `sign`, which gives a sign of life.
  void Start(const std::string& script) {
    std::ofstream(At("role")) << "#!/bin/sh\ncd '" << temp_.path() << "'\necho \"$*\" >>starts\n"
                              << "for last; do :; done\n"
                              << "sign() { echo >/proc/self/fd/${last#--alive=}; }\n"
                              << script << "\n";
    ASSERT_EQ(chmod(At("role").c_str(), 0755), 0);
    options_.command = {At("role"), "--flag"};
    Fork();
  }
  void Fork() {
    pid_ = fork();
    ASSERT_GE(pid_, 0);
    if (pid_ > 0) return;
    const int echo = open(At("stdout").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    BlockSupervisorSignals();
    const auto log = RoleLog::Open(At("log"), FileLimits(), echo);
    _exit(log.ok() ? Supervise(options_, log->get()) : 99);
  }
  static bool Await(const std::function<bool()>& is_so) {
    const int64_t deadline_ms = MonotonicMs() + kPatienceMs;
    while (!is_so()) {
      if (MonotonicMs() > deadline_ms) return false;
      poll(nullptr, 0, 10);
    }
    return true;
  }
  bool AwaitText(const std::string& name, const std::string& text) {
    return Await([&] { return Read(name).find(text) != std::string::npos; });
  }
  // Waits for the supervisor's end. Returns its exit code, or -1 if a signal ended it.
  int AwaitExit() {
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) return -2;
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int End(int signal) {
    kill(pid_, signal);
    return AwaitExit();
  }
  int64_t Starts() const {
    const std::string starts = Read("starts");
    return std::count(starts.begin(), starts.end(), '\n');
  }
  static bool IsGone(const std::string& pid) { return !std::filesystem::exists("/proc/" + pid); }

  static bool IsZombie(const std::string& pid) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string number, name, state;
    file >> number >> name >> state;
    return state == "Z";
  }

  const TempDir temp_;
  SupervisorOptions options_;
  pid_t pid_ = 0;
};

TEST_F(SupervisorTest, ARoleIsStartedAgainUntilASignalAsksForTheEnd) {
  Start("[ $(wc -l <starts) -lt 4 ] && exit 75\necho is ready\nexec sleep 1000");
  ASSERT_TRUE(AwaitText("log", "is ready")) << Read("log");
  EXPECT_EQ(Starts(), 4);
  EXPECT_EQ(End(SIGTERM), 143);
  EXPECT_EQ(Starts(), 4);
  EXPECT_THAT(Read("log"),
              AllOf(HasSubstr("---- start 4 of embedding_ps 1 ----"),
                    HasSubstr("exited with code 75; it will be started again\n"),
                    HasSubstr("exited with code 75; it will be started again in 0.2 s\n")));
  EXPECT_EQ(Read("stdout"), Read("log"));
}

TEST_F(SupervisorTest, TheRoleGetsTheSignalAndServesAsLongAsItLikes) {
  Start(
      "trap 'echo takes its cut; touch asked' TERM\necho is up\n"
      "until [ -e asked ] && [ -e may_end ]; do sleep 0.02; done\nexit 0");
  ASSERT_TRUE(AwaitText("log", "is up"));
  kill(pid_, SIGTERM);
  ASSERT_TRUE(AwaitText("log", "takes its cut"));
  EXPECT_EQ(waitpid(pid_, nullptr, WNOHANG), 0) << "the supervisor lives as long as its role";
  std::ofstream(At("may_end")) << "yes";
  EXPECT_EQ(AwaitExit(), 143);
  EXPECT_THAT(Read("message"), HasSubstr("embedding_ps 1 exited with code 0 after Terminated"));
  EXPECT_EQ(Starts(), 1);
}

TEST_F(SupervisorTest, ASignalDuringAPauseEndsItAtOnce) {
  // Longer than the test may take.
  options_.least_pause_ms = 3600000;
  Start("exit 1");
  ASSERT_TRUE(AwaitText("message", "in 3600.0 s"));
  EXPECT_EQ(End(SIGINT), 130);
  EXPECT_EQ(Starts(), 1);
  EXPECT_THAT(Read("log"), HasSubstr("gets signal 2"));
  EXPECT_EQ(Read("stdout"), Read("log"));
}

TEST_F(SupervisorTest, TheContainersMessageSaysWhatTheRoleSaidLast) {
  Start("echo loading\necho 'error: no such table'\necho bye\nexit 1");
  ASSERT_TRUE(AwaitText("message", "it says"));
  EXPECT_EQ(Read("message"),
            "embedding_ps 1 exited with code 1; it will be started again in 5.0 s\n"
            "it says: error: no such table");
}

// A process cannot log its own SIGKILL.
TEST_F(SupervisorTest, TheLastLineOfARoleThatWasKilledHasNothingToDoWithIt) {
  Start("[ $(wc -l <starts) -eq 2 ] && exec sleep 1000\necho 'error: of long ago'\nkill -KILL $$");
  ASSERT_TRUE(AwaitText("log", "---- start 2"));
  EXPECT_EQ(Read("message"),
            "embedding_ps 1 was killed by signal 9 (Killed); it will be started again");
}

TEST_F(SupervisorTest, ARoleThatIsStoppedForGoodIsKilledAndStartedAgain) {
  options_.life.silence_ms = 100;
  Start("[ $(wc -l <starts) -eq 2 ] && exec sleep 1000\nsign\nkill -STOP $$");
  ASSERT_TRUE(AwaitText("log", "---- start 2"));
  EXPECT_THAT(Read("log"),
              HasSubstr("embedding_ps 1 has given no sign of life for 0.1 s, so it is killed\n"));
  EXPECT_EQ(Read("message"),
            "embedding_ps 1 gave no sign of life for 0.1 s and was killed; it will be started "
            "again");
}

TEST_F(SupervisorTest, ARoleThatIsStoppedBeforeItsFirstSignIsKilledLater) {
  options_.life.silence_ms = 100;
  options_.life.first_sign_ms = 1100;
  Start("[ $(wc -l <starts) -eq 2 ] && sign && exec sleep 1000\nkill -STOP $$");
  ASSERT_TRUE(AwaitText("log", "---- start 2"));
  EXPECT_THAT(Read("message"), HasSubstr("gave no sign of life for 1.1 s and was killed"));
}

TEST_F(SupervisorTest, WhatIsLeftOfTheProcessBeforeGivesNoSigns) {
  options_.life.silence_ms = 100;
  Start(
      "case $(wc -l <starts) in\n"
      "1) while sign 2>>errors; do sleep 0.02; done &\nexit 75 ;;\n"
      "2) sign\nkill -STOP $$ ;;\n"
      "esac\nexec sleep 1000");
  ASSERT_TRUE(AwaitText("log", "---- start 3"));
  EXPECT_THAT(Read("message"), HasSubstr("gave no sign of life"));
}

TEST_F(SupervisorTest, ARoleThatWasKilledForWantOfMemoryIsToldFromOthers) {
  std::filesystem::create_directory(At("proc"));
  std::ofstream(At("proc/mountinfo"))
      << "31 25 0:27 / " << temp_.path() << "/cgroup ro - cgroup cgroup rw,memory\n";
  std::ofstream(At("proc/cgroup")) << "5:memory:/\n";
  std::filesystem::create_directory(At("cgroup"));
  std::ofstream(At("cgroup/memory.oom_control")) << "oom_kill 3\n";
  std::ofstream(At("cgroup/memory.limit_in_bytes")) << "1048576\n";
  options_.proc_folder = At("proc");
  Start(
      "case $(wc -l <starts) in\n"
      "1) echo 'oom_kill 4' >cgroup/memory.oom_control\nkill -KILL $$ ;;\n"
      "2) kill -KILL $$ ;;\n"
      "esac\nexec sleep 1000");
  ASSERT_TRUE(AwaitText("log", "---- start 3"));
  EXPECT_THAT(
      Read("log"),
      AllOf(HasSubstr("embedding_ps 1 was killed by signal 9 (Killed) because the container's "
                      "memory was used up (limit: 1048576 bytes); it will be started again\n"),
            HasSubstr(
                "embedding_ps 1 was killed by signal 9 (Killed); it will be started again in")));
}

TEST_F(SupervisorTest, AnEndingSaysMoreThanTheExit) {
  LeaveEnding(At("left"), EndingOf(Ending::MEMBER_LOST, EMBEDDING_PS, 0, "embedding_ps 0 is lost"));
  Start("cp left ending\nexit 77");
  ASSERT_TRUE(AwaitText("message", "started again"));
  EXPECT_EQ(
      Read("message"),
      "embedding_ps 1 exited with code 77: embedding_ps 0 is lost; it will be started again in 5.0 "
      "s");
}

TEST_F(SupervisorTest, AnEndingOfTheProcessBeforeCountsForNothing) {
  LeaveEnding(At("left"), EndingOf(Ending::MEMBER_LOST, EMBEDDING_PS, 0, "embedding_ps 0 is lost"));
  Start("[ $(wc -l <starts) -eq 1 ] && cp left ending && exit 75\nkill -KILL $$");
  ASSERT_TRUE(AwaitText("log", "was killed by signal 9 (Killed); it will be started again"));
}

TEST_F(SupervisorTest, AProgramThatIsMissingIsNamedAndTriedAgain) {
  options_.command = {At("no_such_program")};
  Fork();
  ASSERT_TRUE(AwaitText("message", "started again"));
  EXPECT_THAT(Read("message"), AllOf(HasSubstr("cannot start " + At("no_such_program")),
                                     HasSubstr("it will be started again in 5.0 s")));
}

TEST_F(SupervisorTest, AProcessWhoseParentIsGoneIsReaped) {
  Start("sh -c 'sleep 0.1 & echo $! >orphan'\nexec sleep 1000");
  ASSERT_TRUE(AwaitText("orphan", "\n"));
  std::string orphan = Read("orphan");
  orphan.pop_back();
  EXPECT_TRUE(Await([&] { return IsGone(orphan); })) << "a zombie would still be in /proc";
  EXPECT_EQ(End(SIGTERM), 143);
}

TEST_F(SupervisorTest, ASupervisorThatIsKilledTakesItsRoleWithIt) {
  Start("echo $$ >role_pid\nexec sleep 1000");
  ASSERT_TRUE(AwaitText("role_pid", "\n"));
  std::string role = Read("role_pid");
  role.pop_back();
  EXPECT_EQ(End(SIGKILL), -1);
  // The process that adopts the role may be slow to reap it.
  EXPECT_TRUE(Await([&] { return IsGone(role) || IsZombie(role); }));
}

TEST_F(SupervisorTest, TheNextProcessOfARoleIsToldHowTheOneBeforeEnded) {
  LeaveEnding(At("left"), EndingOf(Ending::MEMBER_FAILED, EMBEDDING_PS, 1, "no memory"));
  Start(
      "case $(wc -l <starts) in\n"
      "1) echo $$ >first\nkill -KILL $$ ;;\n"
      "2) cp left ending\nexit 75 ;;\n"
      "esac\necho is up\nexec sleep 1000");
  ASSERT_TRUE(AwaitText("log", "is up"));
  std::string pid = Read("first");
  pid.pop_back();
  EXPECT_THAT(Read("starts"),
              AllOf(HasSubstr("pid: " + pid), HasSubstr("--cause=was killed by signal 9 (Killed)"),
                    HasSubstr("--cause=exited with code 75: no memory")));
}

TEST_F(SupervisorTest, TheNextCoordinatorIsToldWhyTheGenerationEnded) {
  options_.role = COORDINATOR;
  options_.index = 0;
  LeaveEnding(At("left"), EndingOf(Ending::MEMBER_LOST, NN_WORKER, 1, "nn_worker 1 is silent"));
  Start("[ $(wc -l <starts) -eq 1 ] && cp left ending && exit 75\necho is up\nexec sleep 1000");
  ASSERT_TRUE(AwaitText("log", "is up"));
  EXPECT_THAT(Read("starts"), AllOf(HasSubstr("\n--flag --ended="), HasSubstr("MEMBER_LOST"),
                                    HasSubstr("--cause=nn_worker 1 is silent")));
}

TEST_F(SupervisorTest, TheCoordinatorOfAStoppedRunIsStartedAgainAfterAPauseToTellIt) {
  options_.role = COORDINATOR;
  options_.index = 0;
  LeaveEnding(At("left"), EndingOf(Ending::ASKED, "the run was asked to stop"));
  Start("cp left ending\nexit 0");
  ASSERT_TRUE(AwaitText("message", "the run was asked to stop; it will be started again in 5.0 s"));
  EXPECT_EQ(End(SIGTERM), 143);
  EXPECT_EQ(Starts(), 1);
}

TEST_F(SupervisorTest, ACoordinatorThatRefusesTwiceLeavesWhyUntilItIsStartedAgain) {
  options_.role = COORDINATOR;
  options_.index = 0;
  options_.submission = 3;
  std::filesystem::create_directory(At("run"));
  Ending refused = EndingOf(Ending::MEMBER_FAILED, COORDINATOR, 0, "no hard links");
  refused.set_kind(Ending::REFUSED);
  LeaveEnding(At("left"), refused);
  LeaveRefusal(At("run"), 3, EndingOf(Ending::OTHER, "of the pod before"));
  Start("[ $(wc -l <starts) -eq 1 ] && ls run >seen\ncp left ending\nexit 1");
  ASSERT_TRUE(AwaitText("message", "no hard links; it will be started again in 5.0 s"));
  EXPECT_EQ(Read("seen"), "");
  EXPECT_FALSE(RefusalOf(At("run"), 3).has_value()) << "once may be a storage that comes late";
  ASSERT_TRUE(Await([this] { return RefusalOf(At("run"), 3).has_value(); }));
  EXPECT_EQ(RefusalOf(At("run"), 3)->text(), "no hard links");
  EXPECT_EQ(Starts(), 2);
  EXPECT_EQ(End(SIGTERM), 143);
}

TEST_F(SupervisorTest, TheCoordinatorHasTheLimitOfTheJob) {
  options_.role = COORDINATOR;
  options_.index = 0;
  options_.max_restarts = 1;
  Start("exit 75");
  ASSERT_TRUE(AwaitText("message", "it will be started again in 5.0 s"));
  EXPECT_EQ(Starts(), 2);
  EXPECT_EQ(End(SIGTERM), 143);
}

}  // namespace
}  // namespace satrap
