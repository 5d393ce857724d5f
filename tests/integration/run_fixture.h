// The base of tests of whole runs: writes a job, runs programs of the build as processes, waits for
// them, and reads what they leave behind.
//
// REQUIRES: the test's working folder is the root of the checkout (or of its runfiles), and the
// programs are in the same build folder as the test

#ifndef SATRAP_TESTS_INTEGRATION_RUN_FIXTURE_H_
#define SATRAP_TESTS_INTEGRATION_RUN_FIXTURE_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {

// A process that the test has started; its stdout and stderr are files.
struct Command {
  pid_t pid = 0;
  std::string out_path;
  std::string err_path;
};

struct CommandEnd {
  int exit_code = -1;  // -1: killed by a signal
  std::string out;
  std::string err;
  double seconds = 0;  // that WaitFor took
};

// Calls kill() for one process. REQUIRES: pid > 0. A search that finds nothing may return 0 or -1,
// and kill() would send the signal to a process group or to all processes.
int SendSignal(pid_t pid, int signal);

class RunFixture : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Writes a job with a synthetic click log: 3 id features, 2 numerics, one table; 2 embedding PSs,
  // 2 embedding workers, 2 NN workers, 1 loader. `more` is appended to the job's text. Returns the
  // job's path.
  std::string WriteJob(int64_t train_samples, const std::string& more = "");
  std::string WriteFile(const std::string& name, const std::string& text);

  // Starts a program of the build: "deploy/satrap_cli", "data_loader/data_loader".
  Command Start(const std::string& program, const std::vector<std::string>& args);
  // Starts any program. `argv` begins with its path, or with a name to look up in PATH.
  Command StartProgram(const std::vector<std::string>& argv);
  // The path of a program of the build, named as in Start.
  static std::string ProgramPath(const std::string& program);
  // Waits until the process ends. After `timeout_s` it is killed and the test fails.
  CommandEnd WaitFor(const Command& command, double timeout_s = 120);
  // Runs ./satrap ARGS to its end.
  CommandEnd Satrap(const std::vector<std::string>& args);
  Command StartSatrap(const std::vector<std::string>& args);

  // The processes, other than this one, whose command line contains `text`. REQUIRES: text is not
  // empty
  static std::vector<pid_t> ProcessesWith(const std::string& text);
  // Waits until no process whose command line contains `text` is left; false after `timeout_s`.
  static bool WaitUntilGone(const std::string& text, double timeout_s);
  // The processes of roles that the launcher of the run in `run_dir` has started. They are found by
  // their output, which goes into the run's logs: their command lines do not name the run.
  static std::vector<pid_t> RoleProcesses(const std::string& run_dir);
  // The process of a role, such as "nn_worker" 1; 0 if there is none at this moment.
  static pid_t RoleProcess(const std::string& run_dir, const std::string& role, int index);
  // Waits until no process of the run's roles is left; false after `timeout_s`.
  static bool WaitUntilOver(const std::string& run_dir, double timeout_s);
  // Waits until `done` returns true; false after `timeout_s`. Calls `done` at each change of a file
  // below dir_, so `done` must depend on these files alone.
  bool WaitUntil(const std::function<bool()>& done, double timeout_s) const;
  // Waits until a run in `run_dir`, below dir_, has trained some steps.
  bool WaitUntilTraining(const std::string& run_dir) const;

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  std::string dir_;

 private:
  int num_commands_ = 0;
};

// The number at `key`, a path of field names separated by dots, in one line of JSON; the path must
// not lead through arrays. NaN if there is none.
double JsonNumber(const std::string& json, const std::string& key);
std::string ReadFile(const std::string& path);
// How often `words` are in `text`. REQUIRES: words is not empty
size_t CountOf(const std::string& text, const std::string& words);
// The process that has started this one or adopted it; 0 if there is no process `pid`.
pid_t ParentOf(pid_t pid);

}  // namespace satrap

#endif  // SATRAP_TESTS_INTEGRATION_RUN_FIXTURE_H_
