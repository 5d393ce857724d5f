#include "common/role/cause_table.h"

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/shortage.h"
#include "common/role/ending.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

Ending FailedBy(Ending::Kind kind, bool before_ready) {
  Ending ending = EndingOf(Ending::MEMBER_FAILED, EMBEDDING_PS, 1, "anything");
  ending.set_kind(kind);
  ending.set_before_ready(before_ready);
  return ending;
}

TEST(CauseTable, HasARuleForEachWhyAndEachKindOfAFailure) {
  std::set<std::pair<int, int>> rules;
  for (const CauseRule& rule : CauseRules()) {
    EXPECT_TRUE(rules.emplace(rule.why, rule.kind).second)
        << Ending::Why_Name(rule.why) << " " << Ending::Kind_Name(rule.kind);
  }
  for (int why = Ending::Why_MIN; why <= Ending::Why_MAX; ++why) {
    Ending ending;
    ending.set_why(static_cast<Ending::Why>(why));
    EXPECT_EQ(RuleOf(ending).why, why);
    ending.set_kind(Ending::NO_MEMORY);
    EXPECT_EQ(RuleOf(ending).why, why) << "whatever its kind";
  }
  for (int kind = Ending::Kind_MIN; kind <= Ending::Kind_MAX; ++kind) {
    EXPECT_EQ(RuleOf(FailedBy(static_cast<Ending::Kind>(kind), false)).kind, kind);
  }
}

TEST(CauseTable, WhatContradictsItselfEndsTheRunAtOnce) {
  for (const Ending::Kind kind : {Ending::REFUSED, Ending::DAMAGED, Ending::NOT_BUILT}) {
    EXPECT_TRUE(NoRestartCures(FailedBy(kind, false), Ending())) << Ending::Kind_Name(kind);
  }
  EXPECT_TRUE(NoRestartCures(EndingOf(Ending::OTHER_DATA, ""), Ending()));
  EXPECT_FALSE(NoRestartCures(FailedBy(Ending::PEER_AWAY, true), FailedBy(Ending::PEER_AWAY, true)))
      << "a peer may come back, however often it was away";
}

TEST(CauseTable, AMountWhoseServerIsAwayIsWaitedForHoweverOftenItIs) {
  const Ending away = FailedBy(Ending::MOUNT_AWAY, true);
  EXPECT_FALSE(NoRestartCures(away, away));
  EXPECT_GT(RuleOf(away).pause_ms, 0);
}

TEST(CauseTable, ABrokerThatStaysAwayEndsTheRunForNow) {
  Ending away = EndingOf(Ending::TOPICS, "no broker answers");
  EXPECT_EQ(RuleOf(away).follows, Follows::kRunEnds) << "whatever its text says";
  away.set_kind(Ending::PEER_AWAY);
  EXPECT_EQ(RuleOf(away).follows, Follows::kRunEndsForNow);
  EXPECT_TRUE(NoRestartCures(away, Ending())) << "each generation would wait as long";
}

TEST(CauseTable, AShortageEndsTheRunAtTheSecondTimeBeforeAllAreReady) {
  for (const Ending::Kind kind :
       {Ending::NO_MEMORY, Ending::NO_PROCESSES, Ending::NO_DESCRIPTORS, Ending::NO_ADDRESS}) {
    SCOPED_TRACE(Ending::Kind_Name(kind));
    const Ending early = FailedBy(kind, true);
    const Ending late = FailedBy(kind, false);
    EXPECT_FALSE(NoRestartCures(early, Ending())) << "the first time";
    EXPECT_TRUE(NoRestartCures(early, early));
    EXPECT_FALSE(NoRestartCures(early, late)) << "the one before had begun to train";
    EXPECT_FALSE(NoRestartCures(late, early)) << "this one had";
    EXPECT_FALSE(NoRestartCures(early, FailedBy(Ending::PEER_AWAY, true))) << "another kind";
  }
  Ending other_process = FailedBy(Ending::NO_MEMORY, true);
  other_process.mutable_origin()->set_index(0);
  EXPECT_TRUE(NoRestartCures(FailedBy(Ending::NO_MEMORY, true), other_process))
      << "whoever was short of it";
}

TEST(CauseTable, WhatANeighbourMayHoldIsTriedAgainAfterSomeSeconds) {
  for (const Ending::Kind kind :
       {Ending::NO_MEMORY, Ending::NO_PROCESSES, Ending::NO_DESCRIPTORS}) {
    EXPECT_GE(RuleOf(FailedBy(kind, true)).pause_ms, 3000) << Ending::Kind_Name(kind);
  }
  EXPECT_EQ(RuleOf(FailedBy(Ending::NO_ADDRESS, true)).pause_ms, 0);
}

TEST(CauseTable, TheKindOfAnErrorIsItsMarkOrElseItsCode) {
  const absl::Status full = absl::ResourceExhaustedError("no memory, says a text");
  EXPECT_EQ(KindOf(full), Ending::NO_ROOM);
  EXPECT_EQ(KindOf(MarkShortage(full, Shortage::kMemory)), Ending::NO_MEMORY);
  EXPECT_EQ(KindOf(MarkShortage(full, Shortage::kProcesses)), Ending::NO_PROCESSES);
  EXPECT_EQ(KindOf(MarkShortage(full, Shortage::kDescriptors)), Ending::NO_DESCRIPTORS);
  EXPECT_EQ(KindOf(MarkShortage(full, Shortage::kAddress)), Ending::NO_ADDRESS);
  EXPECT_EQ(KindOf(MarkShortage(absl::InternalError(""), Shortage::kMount)), Ending::MOUNT_AWAY);
  EXPECT_EQ(KindOf(absl::CancelledError("")), Ending::PEER_AWAY);
  EXPECT_EQ(KindOf(absl::UnavailableError("")), Ending::PEER_AWAY);
  EXPECT_EQ(KindOf(absl::InternalError("")), Ending::LIBRARY_FAILED);
  EXPECT_EQ(KindOf(absl::DataLossError("")), Ending::DAMAGED);
  EXPECT_EQ(KindOf(absl::UnimplementedError("")), Ending::NOT_BUILT);
  EXPECT_EQ(KindOf(absl::InvalidArgumentError("")), Ending::REFUSED);
  EXPECT_EQ(KindOf(absl::PermissionDeniedError("")), Ending::REFUSED);
  EXPECT_EQ(FailureOf(NN_WORKER, 0, absl::DataLossError("")).kind(), Ending::DAMAGED);
}

TEST(CauseTable, PausesGrowAndEnd) {
  EXPECT_EQ(PauseBeforeReadyMs(0), 0);
  EXPECT_EQ(PauseBeforeReadyMs(1), 100);
  EXPECT_EQ(PauseBeforeReadyMs(2), 200);
  EXPECT_EQ(PauseBeforeReadyMs(6), 3200);
  EXPECT_EQ(PauseBeforeReadyMs(7), 5000);
  EXPECT_EQ(PauseBeforeReadyMs(1000), 5000);
}

TEST(CauseTable, StandsInTheDocsAsItIs) {
  std::ifstream file("docs/operations.md");
  const std::string docs((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_FALSE(docs.empty());
  EXPECT_TRUE(absl::StrContains(docs, "\n" + CauseTableText() + "\n"))
      << "docs/operations.md must hold this table:\n\n"
      << CauseTableText();
}

}  // namespace
}  // namespace satrap
