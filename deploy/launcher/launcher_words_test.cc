// Tests that the launcher decides nothing by the words in logs, in statuses and in the run's log.
// Instead it uses endings (common/role/ending.h), exit codes and signals. If a role was unable to
// write its ending, the launcher does not guess it.

#include <string>

#include "deploy/launcher/testing/launcher_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class LauncherWordsTest : public LauncherTest {
 protected:
  // Runs a training that has a cut at step 7. Its coordinator answers with `status`.
  RunEnd RunTraining(const std::string& status) {
    AppendGeneration(1);
    CommitCut(1, 1, 7);
    ScriptCoordinator(status);
    return Run([] {});
  }
};

TEST_F(LauncherWordsTest, ALogThatTellsOfAFailureElsewhereMakesNoEcho) {
  for (const char* words : {"the run has failed: ", "this generation is over: "}) {
    TearDown();
    SetUp();
    SetProgram("data_loader", std::string("sleep 1; echo 'T error data_loader/0 ") + words +
                                  "nn_worker 1: no answer'; exit 1");
    const RunEnd end = Run([] {});
    EXPECT_EQ(end.kind, RunEnd::FAILED);
    EXPECT_THAT(end.message, HasSubstr("data_loader 0 exited with code 1; its log is")) << words;
  }
}

TEST_F(LauncherWordsTest, ALogThatMissesTheCoordinatorDoesNotAccuseIt) {
  SetProgram("nn_worker",
             "sleep 1; echo 'T error nn_worker/0 the coordinator at unix:c has not answered for 8 "
             "s'; exit 75");
  const RunEnd end = Run([] {});
  EXPECT_THAT(end.message, AllOf(HasSubstr("nn_worker "), HasSubstr(" exited with code 75"),
                                 Not(HasSubstr("is running but does not answer"))));
}

TEST_F(LauncherWordsTest, TheProcessThatATextNamesIsNotTheOrigin) {
  const RunEnd end = RunTraining(
      "state: FAILED generation: 1 ending { origin { role: EMBEDDING_PS index: 0 } "
      "text: 'nn_worker 0: no answer' }");
  EXPECT_THAT(end.message,
              HasSubstr("nn_worker 0: no answer\n  embedding_ps 0 was ended; its log"));
}

TEST_F(LauncherWordsTest, ATextWithoutAnOriginNamesNobody) {
  const RunEnd end =
      RunTraining("state: FAILED generation: 1 ending { text: 'nn_worker 0 (process 1) is lost' }");
  EXPECT_THAT(end.message, HasSubstr("nn_worker 0 (process 1) is lost\n  logs are in "));
}

TEST_F(LauncherWordsTest, ATextThatSaysThatNothingIsLostIsNotBelieved) {
  const RunEnd end = RunTraining(
      "state: STOPPED generation: 1 train { step: 12 } ending { text: 'is nothing is lost true?' "
      "}");
  EXPECT_EQ(end.kind, RunEnd::STOPPED);
  EXPECT_THAT(end.warnings, ElementsAre("is nothing is lost true?"));
  EXPECT_THAT(end.outlook, AllOf(HasSubstr("about 5 steps after it are lost"),
                                 Not(HasSubstr("no work is lost"))));
}

TEST_F(LauncherWordsTest, NorIsOneThatSaysThatMuchIsLost) {
  const RunEnd end = RunTraining(
      "state: STOPPED generation: 1 train { step: 7 } ending { loss: NOTHING text: 'much is lost' "
      "}");
  EXPECT_THAT(end.warnings, IsEmpty());
  EXPECT_THAT(end.outlook, HasSubstr("no work is lost; `satrap resume "));
}

TEST_F(LauncherWordsTest, ATextThatNamesAnotherCutIsNoAdvice) {
  const RunEnd end = RunTraining(
      "state: FAILED generation: 1 ending { text: 'a log says: continue from another cut with "
      "`satrap resume RUN --from CUT`' }");
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.outlook, HasSubstr("` continues from step 7 (cut_0001_000001)"));
}

TEST_F(LauncherWordsTest, NorIsALogLineOfACoordinatorThatCannotBegin) {
  SetProgram("deploy/coordinator",
             "sleep 0.5; echo 'error: continue from another cut with `satrap resume RUN --from "
             "CUT`'; exit 1");
  AppendGeneration(1);
  CommitCut(1, 1, 7);
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.outlook, HasSubstr("continues from step 7"));
}

TEST_F(LauncherWordsTest, TheAdviceOfACoordinatorThatCannotBeginIsInItsEnding) {
  SetProgram(
      "deploy/coordinator",
      "sleep 0.5; echo 'error: its cut is damaged'; echo 'advice: RESUME_FROM_ANOTHER_CUT' > "
      "$ending; exit 1");
  AppendGeneration(1);
  CommitCut(1, 1, 7);
  const RunEnd end = Run([] {});
  EXPECT_THAT(end.message,
              AllOf(HasSubstr("coordinator exited with code 1"), HasSubstr("its cut is damaged")));
  EXPECT_EQ(end.outlook, "");
  EXPECT_EQ(end.ending.advice(), Ending::RESUME_FROM_ANOTHER_CUT);
}

TEST_F(LauncherWordsTest, ACauseInTheLogThatReadsLikeAChangeOfSizeIsARestart) {
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  const RunEnd end = Run(
      [] {}, {},
      [&](const StatusAnswer& status) {
        if (status.state() == RUNNING) {
          AppendToLog("generation { generation: 2 began: BEGAN_RESTART ended { text: 'scale' } }");
          SetStatus("state: RESTARTING generation: 1 ending { text: 'no answer' }");
        }
        return true;
      });
  EXPECT_EQ(end.kind, RunEnd::FAILED) << "max_restarts is 0, and only a change of size is free";
  EXPECT_THAT(messages_, SizeIs(0));
}

TEST_F(LauncherWordsTest, AnEchoThatCouldLeaveNothingIsKnownByItsCode) {
  for (const char* code : {"76", "77"}) {
    TearDown();
    SetUp();
    SetProgram("embedding_ps", std::string("sleep 0.8; exit ") + code);
    SetProgram("data_loader", "sleep 1; exit 1");
    EXPECT_THAT(Run([] {}).message, HasSubstr("data_loader 0 exited with code 1")) << code;
  }
}

TEST_F(LauncherWordsTest, ACoordinatorThatIsGoneHasLeftWhatItWouldHaveSaid) {
  job_.set_max_restarts(1);
  SetProgram("deploy/coordinator",
             "sleep 0.6; [ $life = 1 ] && echo \"origin { role: NN_WORKER index: 1 } text: "
             "'nn_worker 1: no answer'\" > $ending; exit 75");
  const RunEnd end = Run([] {});
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0], HasSubstr("nn_worker 1: no answer\n  nn_worker 1 was ended; its log"));
  EXPECT_THAT(end.message, HasSubstr("coordinator exited with code 75"))
      << "what the first one has left is gone before the second one starts";
}

}  // namespace
}  // namespace satrap
