#include "common/rpc/answer_window.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/testing/manual_executor.h"
#include "common/thread/thread_pool_executor.h"
#include "gtest/gtest.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {
namespace {

constexpr int64_t kHoldUs = 5000000;

Message Answer(const std::string& header) { return {header, Buffer()}; }

std::string OutcomeText(Outcome outcome) {
  CallOutcome header;
  header.set_outcome(outcome);
  return "outcome " + header.ShortDebugString();
}

class AnswerWindowTest : public testing::Test {
 protected:
  // Admits one attempt. When its answer comes, it is appended to `answers_` as "number:text".
  Admission Admit(uint64_t number, uint64_t oldest_open, bool without_payload = false) {
    return window_->Admit(
        number, oldest_open,
        [this, number](absl::StatusOr<Message> answer) {
          answers_.push_back(std::to_string(number) + ":" + TextOf(answer));
        },
        without_payload);
  }

  static std::string TextOf(const absl::StatusOr<Message>& answer) {
    if (!answer.ok()) return answer.status().ToString();
    CallOutcome outcome;
    if (answer->header.size() == 2 && outcome.ParseFromString(answer->header)) {
      return OutcomeText(outcome.outcome());
    }
    return answer->header;
  }

  std::vector<std::string> TakeAnswers() { return std::exchange(answers_, {}); }

  ManualExecutor executor_;
  std::vector<std::string> answers_;
  std::unique_ptr<AnswerWindow> window_ = std::make_unique<AnswerWindow>(&executor_, kHoldUs);
};

using Answers = std::vector<std::string>;

TEST_F(AnswerWindowTest, AnUnknownNumberWithoutItsPayloadIsAskedForAndLeavesNoTrace) {
  EXPECT_EQ(Admit(1, 1, true), Admission::kHandled);
  EXPECT_EQ(TakeAnswers(), Answers{"1:" + OutcomeText(OUTCOME_RESEND)});
  EXPECT_EQ(window_->num_running(), 0u);
  EXPECT_EQ(Admit(1, 1), Admission::kRun) << "the attempt with the payload";
  EXPECT_EQ(Admit(1, 1, true), Admission::kHandled) << "known now";
  window_->Finish(1, Answer("first"));
  EXPECT_EQ(TakeAnswers(), (Answers{"1:first", "1:first"}));
  EXPECT_EQ(Admit(1, 1, true), Admission::kHandled) << "and so is its answer";
  EXPECT_EQ(TakeAnswers(), Answers{"1:first"});
  EXPECT_EQ(Admit(1, 2, true), Admission::kHandled);
  EXPECT_EQ(TakeAnswers(), Answers{"1:" + OutcomeText(OUTCOME_OLD)});
}

TEST_F(AnswerWindowTest, ANewCallRunsAndIsAnsweredByFinish) {
  EXPECT_EQ(Admit(1, 1), Admission::kRun);
  EXPECT_EQ(TakeAnswers(), Answers{});
  window_->Finish(1, Answer("first"));
  EXPECT_EQ(TakeAnswers(), Answers{"1:first"});
}

TEST_F(AnswerWindowTest, ARepeatOfARunningCallWaitsForItsAnswer) {
  EXPECT_EQ(Admit(1, 1), Admission::kRun);
  EXPECT_EQ(Admit(1, 1), Admission::kHandled);
  EXPECT_EQ(Admit(1, 1), Admission::kHandled);
  EXPECT_EQ(TakeAnswers(), Answers{});
  window_->Finish(1, Answer("first"));
  EXPECT_EQ(TakeAnswers(), (Answers{"1:first", "1:first", "1:first"}));
}

// Call 1 stays open. Even so, the large answers of later calls must not pile up in memory.
TEST_F(AnswerWindowTest, AWindowThatKeepsUntilDeliveredRunsALaterRepeatAgain) {
  window_ = std::make_unique<AnswerWindow>(&executor_, kHoldUs, Keeping::kUntilDelivered);
  Admit(1, 1);
  for (uint64_t number = 2; number <= 100; ++number) {
    EXPECT_EQ(Admit(number, 1), Admission::kRun);
    window_->Finish(number, Answer("large"));
  }
  EXPECT_EQ(window_->num_kept(), 0u);
  EXPECT_EQ(Admit(2, 1), Admission::kRun);
  window_->Finish(2, Answer("again"));
  EXPECT_EQ(Admit(3, 1, /*without_payload=*/true), Admission::kHandled) << "answered RESEND";
}

TEST_F(AnswerWindowTest, AWindowThatKeepsUntilDeliveredKeepsWhatNoAttemptWaitedFor) {
  window_ = std::make_unique<AnswerWindow>(&executor_, kHoldUs, Keeping::kUntilDelivered);
  Admit(1, 1);
  executor_.AdvanceBy(kHoldUs);  // the attempt is answered WAIT
  TakeAnswers();
  window_->Finish(1, Answer("late"));
  EXPECT_EQ(window_->num_kept(), 1u);
  EXPECT_EQ(Admit(1, 1, /*without_payload=*/true), Admission::kHandled);
  EXPECT_EQ(TakeAnswers(), (Answers{"1:late"}));
  EXPECT_EQ(window_->num_kept(), 0u);
}

TEST_F(AnswerWindowTest, ARepeatOfAnAnsweredCallGetsTheKeptAnswer) {
  Admit(1, 1);
  Buffer payload(3);
  window_->Finish(1, Message{"first", payload});
  absl::StatusOr<Message> repeated;
  EXPECT_EQ(window_->Admit(1, 1, [&](auto answer) { repeated = std::move(answer); }),
            Admission::kHandled);
  EXPECT_EQ(repeated->header, "first");
  EXPECT_EQ(repeated->payload.data(), payload.data());  // shared, not copied
}

TEST_F(AnswerWindowTest, AnErrorIsKeptLikeAnyAnswer) {
  Admit(1, 1);
  window_->Finish(1, absl::NotFoundError("no part 7"));
  EXPECT_EQ(Admit(1, 1), Admission::kHandled);
  EXPECT_EQ(TakeAnswers(), (Answers{"1:NOT_FOUND: no part 7", "1:NOT_FOUND: no part 7"}));
}

TEST_F(AnswerWindowTest, NumbersMayComeInAnyOrderAndWithGaps) {
  EXPECT_EQ(Admit(5, 1), Admission::kRun);
  EXPECT_EQ(Admit(2, 1), Admission::kRun);
  window_->Finish(2, Answer("second"));
  EXPECT_EQ(Admit(1, 1), Admission::kRun);
  window_->Finish(5, Answer("fifth"));
  EXPECT_EQ(TakeAnswers(), (Answers{"2:second", "5:fifth"}));
}

TEST_F(AnswerWindowTest, WhatTheSenderHasClosedIsOldAndDoesNothing) {
  Admit(1, 1);
  window_->Finish(1, Answer("first"));
  EXPECT_EQ(Admit(3, 3), Admission::kRun);
  TakeAnswers();
  EXPECT_EQ(Admit(1, 1), Admission::kHandled);  // answered before
  EXPECT_EQ(Admit(2, 1), Admission::kHandled);  // never seen
  EXPECT_EQ(TakeAnswers(),
            (Answers{"1:" + OutcomeText(OUTCOME_OLD), "2:" + OutcomeText(OUTCOME_OLD)}));
}

TEST_F(AnswerWindowTest, OldestOpenNeverFalls) {
  EXPECT_EQ(Admit(4, 4), Admission::kRun);
  EXPECT_EQ(Admit(5, 2), Admission::kRun);  // sent earlier, arrived later
  EXPECT_EQ(Admit(3, 3), Admission::kHandled);
  EXPECT_EQ(TakeAnswers(), Answers{"3:" + OutcomeText(OUTCOME_OLD)});
}

TEST_F(AnswerWindowTest, AnswersBelowOldestOpenAreNotKept) {
  for (uint64_t number = 1; number <= 10; ++number) {
    Admit(number, 1);
    window_->Finish(number, Answer("x"));
  }
  EXPECT_EQ(window_->num_kept(), 10u);
  Admit(11, 8);
  EXPECT_EQ(window_->num_kept(), 3u);
  EXPECT_EQ(window_->num_running(), 1u);
}

TEST_F(AnswerWindowTest, ACallThatIsClosedWhileItRunsIsAnsweredButNotKept) {
  Admit(1, 1);
  Admit(2, 2);
  EXPECT_EQ(window_->num_running(), 2u);
  EXPECT_EQ(Admit(1, 1), Admission::kHandled);
  EXPECT_EQ(TakeAnswers(), Answers{"1:" + OutcomeText(OUTCOME_OLD)});
  window_->Finish(1, Answer("late"));
  EXPECT_EQ(TakeAnswers(), Answers{"1:late"});
  EXPECT_EQ(window_->num_kept(), 0u);
}

TEST_F(AnswerWindowTest, AHeldAttemptIsToldToWaitAndTheCallGoesOn) {
  EXPECT_EQ(Admit(1, 1), Admission::kRun);
  executor_.AdvanceBy(kHoldUs - 1);
  EXPECT_EQ(TakeAnswers(), Answers{});
  executor_.AdvanceBy(1);
  EXPECT_EQ(TakeAnswers(), Answers{"1:" + OutcomeText(OUTCOME_WAIT)});
  // WAIT is not kept as the answer: the repeat waits for the call, which still runs.
  EXPECT_EQ(Admit(1, 1), Admission::kHandled);
  EXPECT_EQ(TakeAnswers(), Answers{});
  window_->Finish(1, Answer("first"));
  EXPECT_EQ(TakeAnswers(), Answers{"1:first"});
}

TEST_F(AnswerWindowTest, EachAttemptIsHeldForItsOwnTime) {
  Admit(1, 1);
  executor_.AdvanceBy(kHoldUs / 2);
  Admit(1, 1);
  Admit(2, 1);
  executor_.AdvanceBy(kHoldUs / 2);
  EXPECT_EQ(TakeAnswers(), Answers{"1:" + OutcomeText(OUTCOME_WAIT)});
  executor_.AdvanceBy(kHoldUs / 2);
  EXPECT_EQ(TakeAnswers(),
            (Answers{"1:" + OutcomeText(OUTCOME_WAIT), "2:" + OutcomeText(OUTCOME_WAIT)}));
}

TEST_F(AnswerWindowTest, OneTimerServesAllAndEndsWithTheLastWaiter) {
  for (uint64_t number = 1; number <= 100; ++number) {
    Admit(number, number);
    window_->Finish(number, Answer("x"));
  }
  EXPECT_EQ(executor_.num_timers(), 1u);
  executor_.AdvanceBy(kHoldUs);
  EXPECT_EQ(executor_.num_timers(), 0u);
  EXPECT_EQ(TakeAnswers().size(), 100u);
}

TEST_F(AnswerWindowTest, AResponderMayCallTheWindow) {
  window_->Admit(1, 1, [&](auto) {
    EXPECT_EQ(Admit(2, 2), Admission::kRun);
    window_->Finish(2, Answer("second"));
  });
  window_->Finish(1, Answer("first"));
  EXPECT_EQ(TakeAnswers(), Answers{"2:second"});
}

TEST_F(AnswerWindowTest, NumberZeroIsRefused) {
  EXPECT_EQ(Admit(0, 0), Admission::kHandled);
  EXPECT_EQ(TakeAnswers(), Answers{"0:INVALID_ARGUMENT: call has no number"});
}

TEST_F(AnswerWindowTest, ItsEndDropsTheRespondersAndItsTimers) {
  auto owned = std::make_shared<int>(0);
  window_->Admit(1, 1, [owned](auto) {});
  EXPECT_EQ(owned.use_count(), 2);
  window_.reset();
  EXPECT_EQ(owned.use_count(), 1);
  executor_.AdvanceBy(kHoldUs);
}

TEST_F(AnswerWindowTest, FinishIsForCallsThatRun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Admit(1, 1);
  window_->Finish(1, Answer("first"));
  EXPECT_DEATH(window_->Finish(1, Answer("again")), "call 1 does not run");
  EXPECT_DEATH(window_->Finish(2, Answer("never asked")), "call 2 does not run");
}

// Many threads send attempts of the same calls at the same time. hold_us is 0, so some attempts are
// answered WAIT.
TEST(AnswerWindowThreadsTest, RunsEachCallOnceAndAnswersEachAttemptOnce) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 2000;
  ThreadPoolExecutor executor(2);
  std::vector<std::atomic<int>> runs(kCalls + 1);
  std::atomic<int> answers = 0;
  AnswerWindow window(&executor, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (uint64_t number = 1; number <= kCalls; ++number) {
        const uint64_t oldest_open = number > 50 ? number - 50 : 1;
        if (window.Admit(number, oldest_open, [&](auto) { ++answers; }) == Admission::kRun) {
          ++runs[number];
          window.Finish(number, Answer("x"));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  executor.Stop();  // a WAIT in progress finishes; a later one would find no attempt
  EXPECT_EQ(answers, kThreads * kCalls);
  for (int number = 1; number <= kCalls; ++number) EXPECT_LE(runs[number], 1) << number;
  EXPECT_EQ(window.num_running(), 0u);
}

TEST(AnswerWindowsTest, SendersAndStreamsHaveTheirOwn) {
  ManualExecutor executor;
  AnswerWindows windows(&executor, kHoldUs);
  EXPECT_EQ(windows.Get(3, TRAIN_STREAM), windows.Get(3, TRAIN_STREAM));
  EXPECT_EQ(windows.Get(3, TRAIN_STREAM)->Admit(1, 1, [](auto) {}), Admission::kRun);
  EXPECT_EQ(windows.Get(3, VALID_STREAM)->Admit(1, 1, [](auto) {}), Admission::kRun);
  EXPECT_EQ(windows.Get(4, TRAIN_STREAM)->Admit(1, 1, [](auto) {}), Admission::kRun);
  EXPECT_EQ(windows.Get(3, TRAIN_STREAM)->Admit(1, 1, [](auto) {}), Admission::kHandled);
}

}  // namespace
}  // namespace satrap::rpc
