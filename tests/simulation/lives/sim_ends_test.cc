#include "tests/simulation/lives/sim_ends.h"

#include <string>
#include <vector>

#include "common/config/text_format.h"
#include "gmock/gmock.h"

namespace satrap::simulation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SimEndsTest : public testing::Test {
 protected:
  SimEndsTest() : ends_([this](std::string what) { broken_.push_back(std::move(what)); }) {}

  // The broken promises of a log.
  std::vector<std::string> Read(const std::vector<std::string>& texts) {
    broken_.clear();
    ends_.Begin();
    for (const std::string& text : texts) {
      RunLogEntry entry;
      EXPECT_TRUE(ParseText(text, "entry", &entry).ok()) << text;
      ends_.Read(entry);
    }
    return broken_;
  }

  std::vector<std::string> broken_;
  SimEnds ends_;
};

constexpr char kFirst[] = "generation { generation: 1 submission: 1 }";
constexpr char kAgain[] = "generation { generation: 2 submission: 1 began: BEGAN_RESTART }";
constexpr char kMoved[] = "generation { generation: 2 submission: 1 began: BEGAN_MOVED }";
constexpr char kResumed[] = "generation { generation: 2 submission: 2 began: BEGAN_RESUME }";
constexpr char kStopped[] = "end { state: STOPPED submission: 1 }";
constexpr char kFailed[] = "end { state: FAILED submission: 1 }";

TEST_F(SimEndsTest, OnlyAResumeFollowsAnEnd) {
  EXPECT_THAT(Read({kFirst, kFailed, kResumed}), IsEmpty());
  EXPECT_THAT(Read({kFirst, kFailed, kAgain}),
              ElementsAre("generation 2 of submission 1 follows its end"));
  EXPECT_THAT(Read({kFirst, "cut { left_for: STOP }", kAgain}),
              ElementsAre("generation 2 of submission 1 follows the cut of a stop"));
  EXPECT_THAT(Read({kFirst, "end { state: FAILED submission: 2 }"}),
              ElementsAre("submission 2 ends within submission 1"));
}

TEST_F(SimEndsTest, AResumeCountsOnceAndOnlyIfSomebodyHasMadeIt) {
  const std::string twice = "generation { generation: 3 submission: 2 began: BEGAN_RESUME }";
  EXPECT_THAT(Read({kFirst, kResumed, twice}),
              ElementsAre("generation 3 of submission 2 resumes it once more"));
  EXPECT_THAT(Read({kFirst, kResumed, "generation { generation: 3 submission: 1 }"}),
              ElementsAre("generation 3 of submission 1 follows submission 2"));
  EXPECT_THAT(Read({kFirst, "generation { generation: 2 submission: 2 began: BEGAN_RESTART }"}),
              ElementsAre("generation 2 of submission 2 follows submission 1"));
  ends_.OnSubmission(1);
  EXPECT_THAT(Read({kFirst, kResumed}),
              ElementsAre("generation 2 of submission 2, and nobody has made that submission"));
}

TEST_F(SimEndsTest, ARunStopsOnlyIfSomebodyHasAsked) {
  EXPECT_THAT(Read({kFirst, kStopped}), ElementsAre("the run is stopped, and nobody has asked"));
  ends_.OnStopWish();
  EXPECT_THAT(Read({kFirst, kStopped}), IsEmpty());
}

TEST_F(SimEndsTest, WhatWasToldIsInTheLog) {
  Read({kFirst, kFailed});
  ends_.OnEndTold(1, FAILED);
  EXPECT_THAT(broken_, IsEmpty());
  ends_.OnEndTold(1, STOPPED);
  EXPECT_THAT(broken_, ElementsAre("members were told STOPPED, and the log says FAILED"));
  Read({kFirst, kFailed, kResumed});
  ends_.OnEndTold(1, FAILED);
  EXPECT_THAT(broken_, IsEmpty()) << "it was resumed since";
  ends_.OnEndTold(2, FAILED);
  EXPECT_THAT(broken_, ElementsAre("members were told FAILED, and the log says nothing of an end"));
}

TEST_F(SimEndsTest, WhatFollowsAMoveIsNoRestart) {
  Read({kFirst});
  ends_.OnMoved(1);
  EXPECT_THAT(
      Read({kFirst, kAgain}),
      ElementsAre(
          "generation 2 of submission 1 follows a move, and the log calls it BEGAN_RESTART"));
  EXPECT_THAT(Read({kFirst, kMoved}), IsEmpty());
  EXPECT_THAT(Read({kFirst, kResumed}), IsEmpty());
}

TEST_F(SimEndsTest, NorIsItIfOnlyTheLogSaysSo) {
  for (const std::string left : {"cut { left_for: MOVE }", "left { generation: 1 }"}) {
    EXPECT_THAT(
        Read({kFirst, left, kAgain}),
        ElementsAre(
            "generation 2 of submission 1 follows a move, and the log calls it BEGAN_RESTART"));
    EXPECT_THAT(Read({kFirst, left, kMoved}), IsEmpty());
    EXPECT_THAT(Read({kFirst, left, kResumed}), IsEmpty());
  }
}

TEST_F(SimEndsTest, AFailureIsNoMove) {
  const std::string runs = "running { generation: 1 }";
  EXPECT_THAT(Read({kFirst, runs, kMoved}),
              ElementsAre("generation 2 of submission 1 is said to follow a move, and generation 1 "
                          "has not moved"));
  const std::string third = "generation { generation: 3 submission: 1 began: BEGAN_MOVED }";
  EXPECT_THAT(Read({kFirst, "left { generation: 1 }", kMoved, third}), IsEmpty()) << "two claims";
  EXPECT_THAT(Read({kFirst, "left { generation: 1 }", kMoved, "running { generation: 2 }", third}),
              ElementsAre("generation 3 of submission 1 is said to follow a move, and generation 2 "
                          "has not moved"));
  ends_.OnMoved(1, /*is_known=*/false);
  EXPECT_THAT(Read({kFirst, runs, kMoved}), IsEmpty());
  EXPECT_THAT(Read({kFirst, runs, kAgain}), IsEmpty());
}

}  // namespace
}  // namespace satrap::simulation
