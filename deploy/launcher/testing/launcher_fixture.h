// The fixture of the launcher's tests. The programs of a run are shell scripts, which sleep, fail,
// or ignore SIGTERM. If a test needs a coordinator that answers, it uses a scripted one
// (scripted_coordinator.cc), and writes the run's log itself.

#ifndef SATRAP_DEPLOY_LAUNCHER_TESTING_LAUNCHER_FIXTURE_H_
#define SATRAP_DEPLOY_LAUNCHER_TESTING_LAUNCHER_FIXTURE_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "deploy/launcher/launcher.h"
#include "gtest/gtest.h"

namespace satrap {

class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Sets the script that the processes of a role run. Each process first appends its flags to the
  // test's file NAME.args, and writes its pid into NAME.pid. In the script, $life is the number of
  // processes of that name started so far, and $ending is the file for the process's Ending.
  void SetProgram(const std::string& role, const std::string& script);
  // Sets up a coordinator that answers Status with the newest text given to SetStatus, at first
  // `status`.
  void ScriptCoordinator(const std::string& status);
  void SetStatus(const std::string& status, const std::string& name = "status");
  // Appends an entry, in text format, to the run's log.
  void AppendToLog(const std::string& entry_text);
  // Makes a folder with a cut, and appends its entry to the log.
  void CommitCut(uint64_t generation, uint64_t number, uint64_t step);
  // Appends an entry for a generation with the test's job to the log.
  void AppendGeneration(uint64_t number);

  static std::string ContentOf(const std::string& path);
  std::string ArgsOf(const std::string& process) const {
    return ContentOf(dir_ + "/" + process + ".args");
  }
  // Waits until a process has been started, and returns its pid.
  pid_t PidOf(const std::string& process) const;
  // Starts a run, calls `then` once all processes run, and waits for the run's end.
  RunEnd Run(
      const std::function<void()>& then, const LaunchOptions& options = {},
      const std::function<bool(const StatusAnswer&)>& on_status = [](const StatusAnswer&) {
        return true;
      });
  // Sends a signal to all processes except the coordinator. REQUIRES: called during Run
  void EndRoles(int signal);
  // Checks that both the processes that were started first and the processes that were started last
  // have ended.
  void ExpectNobodyIsLeft() const;

  std::string dir_;
  std::unique_ptr<RunFolder> folder_;
  JobConfig job_;                      // without restarts, and with two NN workers
  std::map<std::string, pid_t> pids_;  // pids of the processes started first
  std::vector<std::string> messages_;
  std::function<void()> on_message_;
  std::function<void()> on_end_;  // called after the run, before the launcher is destroyed
  Launcher* launcher_ = nullptr;  // during Run
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_TESTING_LAUNCHER_FIXTURE_H_
