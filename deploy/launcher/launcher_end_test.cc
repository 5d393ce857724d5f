// Tests runs whose end is in their log, or is being written to it.

#include <csignal>
#include <fstream>
#include <string>

#include "deploy/launcher/testing/launcher_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class LauncherEndTest : public LauncherTest {
 protected:
  // Runs a training that may be restarted, until its coordinator dies after it has written `end`.
  RunEnd RunUntil(const std::string& end) {
    job_.set_max_restarts(5);
    return Run([&] {
      AppendGeneration(1);
      AppendToLog(end);
      kill(pids_["coordinator0"], SIGKILL);
    });
  }
};

TEST_F(LauncherEndTest, ARunWhoseLogSaysThatItHasFailedIsNotRestarted) {
  const RunEnd end =
      RunUntil("end { state: FAILED submission: 1 ending { text: 'a.rows is damaged' } }");
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_EQ(end.message, "a.rows is damaged");
  EXPECT_THAT(messages_, SizeIs(0));
}

TEST_F(LauncherEndTest, NorIsOneWhoseLogSaysThatItWasStopped) {
  const RunEnd end = RunUntil(
      "end { state: STOPPED submission: 1 ending { why: ASKED loss: NOTHING text: 'stopped' } }");
  EXPECT_EQ(end.kind, RunEnd::STOPPED);
  EXPECT_THAT(messages_, SizeIs(0));
  EXPECT_THAT(end.warnings, SizeIs(0)) << "nothing is lost";
}

// The killed role could not report its own end. The log has only what another role saw of it.
TEST_F(LauncherEndTest, ARoleThatWasKilledIsTheCauseWhateverAnotherHasSeenOfIt) {
  job_.set_max_restarts(5);
  const RunEnd end = Run([&] {
    AppendGeneration(1);
    AppendToLog(
        "end { state: FAILED submission: 1 ending { why: MEMBER_FAILED "
        "origin { role: NN_WORKER index: 1 } text: 'nn_worker 1: connection closed' } }");
    kill(pids_["nn_worker0"], SIGKILL);
  });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, HasSubstr("nn_worker 0 was killed by signal 9"));
  EXPECT_THAT(messages_, SizeIs(0));
}

// While the coordinator tries to write the run's end to a full disk, a role that has failed may
// exit.
TEST_F(LauncherEndTest, AnEndThatIsStillBeingWrittenIsWaitedForWhoeverExitsMeanwhile) {
  job_.set_max_restarts(5);
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1 writes_end: true");
  SetStatus("state: FAILED generation: 1 ending { text: 'the data is wrong' }", "failed");
  const std::string after_asked = "until [ -e '" + dir_ + "/asked' ]; do sleep 0.05; done; ";
  SetProgram("data_loader", after_asked + "exit 75");
  SetProgram("embedding_ps", after_asked + "sleep 2; mv '" + dir_ + "/run/failed.textproto' '" +
                                 dir_ + "/run/status.textproto'; exec sleep 60");
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer& status) {
                           if (status.writes_end()) std::ofstream(dir_ + "/asked") << "x";
                           return true;
                         });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, HasSubstr("the data is wrong"));
  EXPECT_THAT(messages_, SizeIs(0));
}

}  // namespace
}  // namespace satrap
