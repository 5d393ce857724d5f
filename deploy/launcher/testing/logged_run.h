// Test support: the folder of a run whose log and cuts a test writes itself.

#ifndef SATRAP_DEPLOY_LAUNCHER_TESTING_LOGGED_RUN_H_
#define SATRAP_DEPLOY_LAUNCHER_TESTING_LOGGED_RUN_H_

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace satrap {

// Appends an entry, in text format, to the log of the run in `run_dir`, as another process would.
void AppendToLog(const std::string& run_dir, const std::string& entry_text);

// Makes the folder of a cut, with a manifest that names no files. Does not add it to the log.
void WriteCut(const std::string& run_dir, uint64_t generation, uint64_t number, uint64_t step,
              uint64_t samples = 0);

// Gives each test an empty folder, whose path contains no links.
class LoggedRunTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  void Append(const std::string& entry_text) { AppendToLog(dir_, entry_text); }

  std::string dir_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_TESTING_LOGGED_RUN_H_
