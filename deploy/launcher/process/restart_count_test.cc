#include "deploy/launcher/process/restart_count.h"

#include <string>
#include <vector>

#include "common/role/ending.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Ending Failure(Ending::Kind kind, bool before_ready) {
  Ending ending = EndingOf(Ending::MEMBER_FAILED, EMBEDDING_PS, 0, "anything");
  ending.set_kind(kind);
  ending.set_before_ready(before_ready);
  return ending;
}

std::vector<int64_t> Pauses(RestartCount* count, const Ending& failure, int times) {
  std::vector<int64_t> pauses;
  for (int i = 0; i < times; ++i) pauses.push_back(count->AddFailure(failure, 99).value_or(-1));
  return pauses;
}

TEST(RestartCount, PausesGrowUntilACut) {
  RestartCount count;
  const Ending lost = EndingOf(Ending::MEMBER_LOST, "");
  EXPECT_THAT(Pauses(&count, lost, 8), ElementsAre(0, 1000, 2000, 4000, 8000, 16000, 30000, 30000));
  count.OnCut();
  EXPECT_THAT(Pauses(&count, lost, 2), ElementsAre(0, 1000));
}

TEST(RestartCount, GenerationsThatWereNotReadyPauseAtOnce) {
  RestartCount count;
  EXPECT_THAT(Pauses(&count, Failure(Ending::PEER_AWAY, true), 2), ElementsAre(100, 1000));
  count.OnCut();
  EXPECT_THAT(Pauses(&count, Failure(Ending::PEER_AWAY, true), 1), ElementsAre(400));
  count.OnCut();
  EXPECT_THAT(Pauses(&count, Failure(Ending::PEER_AWAY, false), 1), ElementsAre(0));
}

TEST(RestartCount, WhatANeighbourMayHoldIsGivenTimeAndEndsTheRunAtTheSecondTime) {
  for (const Ending::Kind kind :
       {Ending::NO_MEMORY, Ending::NO_PROCESSES, Ending::NO_DESCRIPTORS}) {
    RestartCount count;
    EXPECT_THAT(Pauses(&count, Failure(kind, true), 1), ElementsAre(5000));
    EXPECT_FALSE(count.repeated());
    const absl::Status over = count.AddFailure(Failure(kind, true), 99).status();
    EXPECT_EQ(over.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(over.message()), HasSubstr("so no restart cures it: "));
    EXPECT_TRUE(count.repeated());
  }
}

TEST(RestartCount, AWishBetweenBeginsAnew) {
  RestartCount count;
  EXPECT_THAT(Pauses(&count, Failure(Ending::NO_MEMORY, true), 1), ElementsAre(5000));
  count.AddWish();
  EXPECT_THAT(Pauses(&count, Failure(Ending::NO_MEMORY, true), 1), ElementsAre(5000));
}

TEST(RestartCount, ThereAreNoMoreThanTheJobAllows) {
  RestartCount count;
  const Ending lost = EndingOf(Ending::MEMBER_LOST, "");
  EXPECT_EQ(RestartCount().AddFailure(lost, 0).status().message(), "");
  EXPECT_TRUE(count.AddFailure(lost, 1).ok());
  EXPECT_EQ(count.AddFailure(lost, 1).status().message(),
            "\n  the run was restarted 1 time without a cut in between (max_restarts)");
  EXPECT_FALSE(count.repeated());
}

}  // namespace
}  // namespace satrap
