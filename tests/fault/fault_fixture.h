// The base of tests that break a run. In its job the layer `tally` counts, in a table of its own,
// how often each record is trained. So the rows of the last cut prove that no record was lost and
// none was trained twice.

#ifndef SATRAP_TESTS_FAULT_FAULT_FIXTURE_H_
#define SATRAP_TESTS_FAULT_FAULT_FIXTURE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "proto/run_log.pb.h"
#include "tests/integration/run_fixture.h"

namespace satrap {

class FaultFixture : public RunFixture {
 protected:
  // Writes a job of `records` synthetic records with 2 processes of each role, a cut every 40 steps
  // and the counting table. `more` is appended to the job's text. Returns the job's path.
  std::string WriteCountingJob(int64_t records, const std::string& more = "");

  // The text of the counting table, with the id 1, for a test with a job of its own.
  static std::string TallyTable();

  // Starts `satrap train JOB --run_dir RunDir() ARGS`.
  Command StartRun(const std::string& job, const std::vector<std::string>& args = {});
  std::string RunDir() const { return Path("run"); }
  // Runs `satrap resume RunDir() ARGS` to its end.
  CommandEnd Resume(const std::vector<std::string>& args = {});
  // Leaves a run in RunDir() that has committed some cuts and was then killed with its launcher.
  void LeaveAKilledRun(const std::string& job, const std::vector<std::string>& args = {});

  // Sends a signal to a role's process, and after SIGSTOP waits until it is stopped. Fails the test
  // if there is no such process for some seconds.
  void Signal(const std::string& role, int index, int signal);
  // Waits for the run's processes to end. Returns whether none is left.
  bool NobodyIsLeft() const;

  // The entries of the run's log.
  std::vector<RunLogEntry> Log() const;
  // These wait until the log holds `count` entries of a kind; false after `timeout_s`.
  bool WaitForCuts(int count, double timeout_s = 60);
  bool WaitForGenerations(int count, double timeout_s = 60);
  int Cuts() const;
  int Generations() const;
  // The folder of the cut that the log names last.
  std::string NewestCut() const;
  // The digest of the model, as the report of the finished run gives it.
  std::string ModelDigest() const;

  // Expects that the newest cut's table counts `times` for each of the records 0 .. records - 1 and
  // holds no other row.
  void ExpectEachRecordTrained(int64_t records, int times = 1);
  // The id of a record in the feature `record`. The default is the record's id in the synthetic
  // log.
  virtual uint64_t IdOfRecord(int64_t record) const { return static_cast<uint64_t>(record); }
  // Expects exit code 0 and each record trained once.
  void ExpectFinished(const CommandEnd& end, int64_t records, int times = 1);
};

}  // namespace satrap

#endif  // SATRAP_TESTS_FAULT_FAULT_FIXTURE_H_
