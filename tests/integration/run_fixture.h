// A RunFixture is a small language for tests of whole runs: it writes a job, runs the command line
// on it in a process of its own, and looks at what is left.
//
// REQUIRES: the test's working folder is the root of the checkout (or of its runfiles), and the
// programs were built beside the command line.

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
  int exit_code = -1;  // -1: it was killed by a signal, or had to be killed
  std::string out;
  std::string err;
  double seconds = 0;  // until it ended
};

class RunFixture : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A job over a synthetic click log: 3 id features, 2 numerics, one table. 2 embedding PSs, 2
  // embedding workers, 2 NN workers, 1 loader. `more` is text that is added. Returns its path.
  std::string WriteJob(int64_t train_samples, const std::string& more = "");
  std::string WriteFile(const std::string& name, const std::string& text);

  // Starts a program of the build: "deploy/satrap_cli", "data_loader/data_loader".
  Command Start(const std::string& program, const std::vector<std::string>& args);
  // Waits for its end; after `patience_s` it is killed and the test fails.
  CommandEnd WaitFor(const Command& command, double patience_s = 120);
  // ./satrap ARGS, from its start to its end.
  CommandEnd Satrap(const std::vector<std::string>& args);
  Command StartSatrap(const std::vector<std::string>& args);

  // Processes whose command line has `text`, this one left out.
  static std::vector<pid_t> ProcessesWith(const std::string& text);
  // Waits until none of them is left; false after `patience_s`.
  static bool WaitUntilGone(const std::string& text, double patience_s);
  // Waits until `done`, which looks at what lies below dir_: it is asked at each change there.
  // False after `patience_s`.
  bool WaitUntil(const std::function<bool()>& done, double patience_s) const;
  // Waits until a run in `run_dir`, below dir_, has trained some steps.
  bool WaitUntilTraining(const std::string& run_dir) const;

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  std::string dir_;

 private:
  int num_commands_ = 0;
};

// The value of `key`, a path of object fields separated by dots, in one line of JSON without
// arrays on the way; NaN if it is not there or no number.
double JsonNumber(const std::string& json, const std::string& key);
std::string ReadFile(const std::string& path);

}  // namespace satrap

#endif  // SATRAP_TESTS_INTEGRATION_RUN_FIXTURE_H_
