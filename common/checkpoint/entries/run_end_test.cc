#include "common/checkpoint/entries/run_end.h"

#include <string>
#include <vector>

#include "common/config/text_format.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

std::vector<RunLogEntry> Log(const std::vector<std::string>& texts) {
  std::vector<RunLogEntry> entries;
  for (const std::string& text : texts) {
    EXPECT_TRUE(ParseText(text, "entry", &entries.emplace_back()).ok()) << text;
  }
  return entries;
}

TEST(RunEndTest, AnEndOfAnOlderBuildIsThatOfARunThatHasFinished) {
  const auto entries = Log({"generation { generation: 1 }", "end { result { steps: 3 } }"});
  ASSERT_NE(EndOf(entries), nullptr);
  EXPECT_EQ(StateOf(*EndOf(entries)), FINISHED);
  EXPECT_TRUE(HasFinished(entries));
}

TEST(RunEndTest, AGenerationThatFollowsTakesTheEndBack) {
  auto entries = Log({"generation { generation: 1 submission: 1 }",
                      "end { state: STOPPED submission: 1 ending { text: 'asked' } }"});
  ASSERT_NE(EndOf(entries), nullptr);
  EXPECT_EQ(StateOf(*EndOf(entries)), STOPPED);
  EXPECT_FALSE(HasFinished(entries));
  entries.push_back(Log({"generation { generation: 2 submission: 2 }"})[0]);
  EXPECT_EQ(EndOf(entries), nullptr);
  EXPECT_EQ(EndOf({}), nullptr);
}

TEST(RunEndTest, TheSubmissionIsThatOfTheNewestGenerationAndOlderBuildsHadOnlyOne) {
  EXPECT_EQ(SubmissionOf({}), 0u);
  EXPECT_EQ(SubmissionOf(Log({"generation { generation: 1 }",
                              "generation { generation: 2 began: BEGAN_RESUME }"})),
            1u);
  EXPECT_EQ(SubmissionOf(Log({"generation { generation: 1 submission: 1 }",
                              "generation { generation: 2 submission: 4 }", "cut { step: 2 }"})),
            4u);
}

TEST(RunEndTest, AGenerationHasMovedIfTheNewestEntrySaysSo) {
  EXPECT_FALSE(HasMoved({}));
  auto entries = Log({"generation { generation: 1 }", "left { generation: 1 }"});
  EXPECT_TRUE(HasMoved(entries));
  entries.push_back(Log({"generation { generation: 2 began: BEGAN_MOVED }"})[0]);
  EXPECT_FALSE(HasMoved(entries));
  entries.push_back(Log({"cut { generation: 2 leave: true left_for: MOVE }"})[0]);
  EXPECT_TRUE(HasMoved(entries));
  entries.push_back(Log({"cut { generation: 2 leave: true left_for: STOP }"})[0]);
  EXPECT_FALSE(HasMoved(entries));
}

TEST(RunEndTest, WhoHasMovedIsToldIfThatIsKnown) {
  const auto cause = [](const std::string& text) {
    return CauseText(Log({"generation { began: BEGAN_MOVED " + text + " }"})[0].generation());
  };
  EXPECT_EQ(cause("ended { why: MOVED text: 'nn_worker 0 leaves its machine' }"),
            "moved: nn_worker 0 leaves its machine");
  EXPECT_EQ(cause("ended { text: 'the coordinator was started again' }"), "moved");
}

TEST(RunEndTest, ARestartBeginsFromTheStepOfItsCutOrElseFromItsOwn) {
  const auto restarts = RestartsIn(Log({
      "generation { generation: 1 began: BEGAN_START }",
      "cut { cut: 'cut_0001_000001' step: 7 }",
      "generation { generation: 2 began: BEGAN_RESUME cut: 'cut_0001_000001' from_step: 6 }",
      "generation { generation: 3 began: BEGAN_SCALE_ANNOUNCED cut: 'cut_0001_000001' }",
      "generation { generation: 3 began: BEGAN_SCALED cut: 'cut_removed' from_step: 9 }",
  }));
  ASSERT_EQ(restarts.size(), 2u);
  EXPECT_EQ(restarts[0].generation(), 2u);
  EXPECT_EQ(restarts[0].began(), BEGAN_RESUME);
  EXPECT_EQ(restarts[0].from_step(), 7u);
  EXPECT_EQ(restarts[0].cause(), "resume");
  EXPECT_EQ(restarts[1].generation(), 3u);
  EXPECT_EQ(restarts[1].began(), BEGAN_SCALED);
  EXPECT_EQ(restarts[1].from_step(), 9u) << "its cut has left the log";
}

TEST(RunEndTest, OnlyTheNewestEntryIsTheCutOfAStop) {
  auto entries = Log({"generation { generation: 1 }",
                      "cut { cut: 'cut_0001_000001' step: 7 leave: true left_for: STOP }"});
  ASSERT_NE(LeftFor(entries, CutEntry::STOP), nullptr);
  EXPECT_EQ(LeftFor(entries, CutEntry::MOVE), nullptr);
  const Ending stopped = StoppedAfter(*LeftFor(entries, CutEntry::STOP));
  EXPECT_EQ(stopped.text(), "stopped on request after cut_0001_000001 at step 7; nothing is lost");
  EXPECT_EQ(stopped.why(), Ending::ASKED);
  EXPECT_EQ(stopped.loss(), Ending::NOTHING);
  entries.push_back(Log({"generation { generation: 2 }"})[0]);
  EXPECT_EQ(LeftFor(entries, CutEntry::STOP), nullptr);
  EXPECT_EQ(LeftFor(Log({"cut { leave: true }"}), CutEntry::STOP), nullptr) << "an older build";
}

}  // namespace
}  // namespace satrap
