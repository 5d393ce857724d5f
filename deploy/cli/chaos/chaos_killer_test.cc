#include "deploy/cli/chaos/chaos_killer.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/run_log.h"
#include "common/testing/temp_dir.h"
#include "common/thread/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ChaosEvent KillOf(Role role, int index) {
  ChaosEvent event;
  event.role = role;
  event.index = index;
  return event;
}

// A run whose processes do nothing.
class ChaosKillerTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(dir_ + "/logs"); }
  void TearDown() override {
    for (const auto& [pid, name] : living_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  void StartLife(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const int log =
          open(absl::StrCat(dir_, "/logs/", name, ".log").c_str(), O_WRONLY | O_CREAT, 0644);
      const pid_t pid = fork();
      if (pid == 0) {
        dup2(log, 1);
        while (true) pause();
      }
      close(log);
      living_[pid] = name;
    }
  }
  // Waits until one of the run's processes is dead, as a launcher does. Returns its name.
  std::string AwaitDeath() {
    const pid_t pid = waitpid(-1, nullptr, 0);
    const std::string name = living_[pid];
    living_.erase(pid);
    return name;
  }
  void EndLife() {
    for (const auto& [pid, name] : living_) kill(pid, SIGKILL);
    while (!living_.empty()) AwaitDeath();
  }

  void Append(const RunLogEntry& entry) {
    auto log = RunLog::Open(dir_, DiskFileSystem(), /*writer=*/1);
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE(log->Append(entry).ok());
  }
  void AppendGeneration() {
    RunLogEntry entry;
    entry.mutable_generation()->set_generation(1);
    entry.mutable_generation()->set_run_id(7);
    Append(entry);
  }
  void AppendCut(const std::string& name) {
    RunLogEntry entry;
    entry.mutable_cut()->set_cut(name);
    entry.mutable_cut()->set_generation(1);
    Append(entry);
  }

  ChaosKiller::Options Options(std::vector<ChaosEvent> kills) {
    ChaosKiller::Options options;
    options.run_dir = dir_;
    options.kills = std::move(kills);
    options.verify = [this](const std::string& folder) {
      MutexLock lock(&mutex_);
      verified_.push_back(fs::path(folder).filename().string());
      told_.NotifyAll();
      return result_;
    };
    options.tell = [](const std::string&) {};
    return options;
  }
  void AwaitVerified(size_t count) {
    MutexLock lock(&mutex_);
    while (verified_.size() < count) told_.Wait(&mutex_);
  }

  const TempDir temp_;
  const std::string dir_ = temp_.path();
  std::map<pid_t, std::string> living_;
  Mutex mutex_;
  CondVar told_;
  std::vector<std::string> verified_;
  absl::Status result_;
};

TEST_F(ChaosKillerTest, KillsOneProcessOfEachLifeAndVerifiesTheNewestCut) {
  StartLife({"coordinator_0", "embedding_ps_0", "embedding_ps_1"});
  AppendGeneration();
  ChaosKiller killer(Options({KillOf(EMBEDDING_PS, 1), KillOf(COORDINATOR, 0)}));
  AppendCut("cut_0001_000001");
  EXPECT_EQ(AwaitDeath(), "embedding_ps_1");
  AwaitVerified(1);
  AppendCut("cut_0001_000002");
  // The coordinator is not killed yet: the kill waits until the launcher has started new processes.
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), 0);
  EndLife();
  StartLife({"coordinator_0", "embedding_ps_0"});
  EXPECT_EQ(AwaitDeath(), "coordinator_0");
  AwaitVerified(2);
  killer.Stop();
  EXPECT_EQ(killer.kills(), 2);
  EXPECT_EQ(killer.verified_cuts(), 2);
  EXPECT_EQ(killer.problems(), "");
  EXPECT_THAT(verified_, ElementsAre("cut_0001_000001", "cut_0001_000002"));
}

TEST_F(ChaosKillerTest, KillsNobodyBeforeTheFirstCut) {
  StartLife({"nn_worker_0"});
  AppendGeneration();
  ChaosKiller killer(Options({KillOf(NN_WORKER, 0)}));
  killer.Stop();
  EXPECT_EQ(killer.kills(), 0);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), 0);
}

TEST_F(ChaosKillerTest, TellsOfADamagedCut) {
  StartLife({"nn_worker_0"});
  AppendGeneration();
  AppendCut("cut_0001_000001");
  result_ = absl::DataLossError("dense.bin is damaged");
  ChaosKiller killer(Options({KillOf(NN_WORKER, 0)}));
  EXPECT_EQ(AwaitDeath(), "nn_worker_0");
  AwaitVerified(1);
  killer.Stop();
  EXPECT_EQ(killer.verified_cuts(), 0);
  EXPECT_THAT(killer.problems(), HasSubstr("after kill 1: dense.bin is damaged"));
}

TEST_F(ChaosKillerTest, ARunThatHasFinishedIsLeftAlone) {
  StartLife({"nn_worker_0"});
  AppendGeneration();
  AppendCut("cut_0001_000001");
  RunLogEntry end;
  end.mutable_end();
  Append(end);
  ChaosKiller killer(Options({KillOf(NN_WORKER, 0)}));
  killer.Stop();
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), 0);
}

}  // namespace
}  // namespace satrap
