#include "common/role/ending.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "common/checkpoint/start_cut.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class EndingTest : public ::testing::Test {
 protected:
  std::string Path() const { return dir_ + "/nn_worker_0.ending"; }

  const TempDir temp_;
  const std::string dir_ = temp_.path();
};

TEST_F(EndingTest, TheCodeSaysWhoseFailureItWasAndWhetherToStartAgain) {
  const Ending own = EndingOf(Ending::MEMBER_FAILED, NN_WORKER, 1, "no answer");
  EXPECT_EQ(ExitCodeOf(RESTARTING, own, NN_WORKER, 1), 75);
  EXPECT_EQ(ExitCodeOf(FAILED, own, NN_WORKER, 1), 1);
  EXPECT_EQ(ExitCodeOf(RESTARTING, own, NN_WORKER, 0), 76);
  EXPECT_EQ(ExitCodeOf(FAILED, own, NN_WORKER, 0), 77);
  EXPECT_EQ(ExitCodeOf(RESTARTING, own, EMBEDDING_PS, 1), 76) << "of another role";
  for (const RunState well : {FINISHED, STOPPED}) {
    EXPECT_EQ(ExitCodeOf(well, own, NN_WORKER, 0), 0);
    EXPECT_EQ(ExitCodeOf(well, own, NN_WORKER, 1), 0);
  }
}

TEST_F(EndingTest, AnEndingWithoutAnOriginIsAnEchoForEverybody) {
  const Ending nobodys = EndingOf(Ending::SUPERSEDED, "another coordinator");
  EXPECT_EQ(ExitCodeOf(RESTARTING, nobodys, DATA_LOADER, 0), 76);
  EXPECT_FALSE(IsOf(nobodys, COORDINATOR, 0)) << "the first value of an enum is no origin";
}

TEST_F(EndingTest, AnErrorOfTheStartCutAdvisesToTakeAnotherOne) {
  const absl::Status damaged = absl::DataLossError("a.rows is damaged");
  const Ending of_cut = FailureOf(EMBEDDING_PS, 1, MarkAsStartCutError(damaged));
  EXPECT_EQ(of_cut.why(), Ending::MEMBER_FAILED);
  EXPECT_EQ(of_cut.advice(), Ending::RESUME_FROM_ANOTHER_CUT);
  EXPECT_TRUE(IsOf(of_cut, EMBEDDING_PS, 1));
  EXPECT_EQ(FailureOf(EMBEDDING_PS, 1, damaged).advice(), Ending::RESUME);
}

TEST_F(EndingTest, WordsInAnErrorAreNoAdvice) {
  const absl::Status quoted = absl::DataLossError(std::string("a log says: ") + kChooseAnotherCut);
  EXPECT_EQ(FailureOf(EMBEDDING_PS, 1, quoted).advice(), Ending::RESUME);
}

TEST_F(EndingTest, WhatIsLeftIsReadBack) {
  Ending ending = EndingOf(Ending::MEMBER_LOST, EMBEDDING_PS, 1, "line 1\n  line \"2\"");
  ending.set_loss(Ending::STEPS);
  ending.set_lost_steps(7);
  LeaveEnding(Path(), ending);
  const auto read = ReadEnding(Path());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->SerializeAsString(), ending.SerializeAsString());
  EXPECT_FALSE(std::filesystem::exists(Path() + ".new"));
}

TEST_F(EndingTest, ThereIsNoneWhereNothingWasLeftOrHalfOfIt) {
  EXPECT_FALSE(ReadEnding(Path()).has_value());
  std::ofstream(Path()) << "why: MEMBER_FAI";
  EXPECT_FALSE(ReadEnding(Path()).has_value());
  EXPECT_FALSE(ReadEnding("").has_value());
}

TEST_F(EndingTest, AFolderThatIsGoneDoesNotKeepAProcessFromItsExit) {
  LeaveEnding(dir_ + "/gone/x.ending", EndingOf(Ending::OTHER, "x"));
  LeaveEnding("", EndingOf(Ending::OTHER, "nobody asked for it"));
  EXPECT_TRUE(std::filesystem::is_empty(dir_));
}

}  // namespace
}  // namespace satrap
