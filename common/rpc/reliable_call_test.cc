#include "common/rpc/reliable_call.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/sign_of_life.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {
namespace {

constexpr Method kMethod{"/satrap.Test/Change", true};
constexpr int64_t kSecondUs = 1000000;

Message WithOutcome(Outcome outcome) {
  CallOutcome header;
  header.set_outcome(outcome);
  return {header.SerializeAsString(), Buffer()};
}

Message WithText(const std::string& text) { return {text, Buffer()}; }

// Keeps attempts open until the test answers them.
class ScriptedChannel final : public Channel {
 public:
  void Call(const Method& method, Message request, int64_t timeout_ms, Callback done) override {
    EXPECT_TRUE(method == kMethod);
    requests.push_back(request.header);
    payload_bytes.push_back(request.payload.size());
    timeouts_ms.push_back(timeout_ms);
    open.push_back(std::move(done));
    if (answer_inside) std::exchange(open.back(), nullptr)(WithText("inside"));
  }

  std::vector<std::string> requests;
  std::vector<size_t> payload_bytes;
  std::vector<int64_t> timeouts_ms;
  std::vector<Callback> open;  // by attempt, from 0
  bool answer_inside = false;
};

class ReliableCallTest : public testing::Test {
 protected:
  std::shared_ptr<ReliableCall> Start() {
    auto call = std::make_shared<ReliableCall>(
        &executor_, &channel_, kMethod, timeouts_,
        [this](bool with_payload) {
          return Message{"attempt " + std::to_string(++made_), with_payload ? payload_ : Buffer()};
        },
        [this](absl::StatusOr<Message> result) { results_.push_back(std::move(result)); });
    call->Start();
    return call;
  }

  void Answer(int attempt, absl::StatusOr<Message> outcome) {
    channel_.open.at(attempt)(std::move(outcome));
  }

  ManualExecutor executor_;
  ScriptedChannel channel_;
  RpcTimeouts timeouts_;
  Buffer payload_{1000};
  int made_ = 0;
  std::vector<absl::StatusOr<Message>> results_;
};

TEST_F(ReliableCallTest, AnAnswerIsTheResult) {
  Start();
  EXPECT_EQ(channel_.timeouts_ms, std::vector<int64_t>{10000});
  Answer(0, WithText("done"));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0]->header, "done");
  executor_.AdvanceBy(100 * kSecondUs);
  EXPECT_EQ(channel_.requests.size(), 1u);
}

TEST_F(ReliableCallTest, WaitIsRepeatedAtOnceAndWithoutLimit) {
  Start();
  for (int attempt = 0; attempt < 1000; ++attempt) {
    executor_.AdvanceBy(5 * kSecondUs);
    Answer(attempt, WithOutcome(OUTCOME_WAIT));
    EXPECT_EQ(channel_.requests.size(), attempt + 1u) << "not inside the channel's callback";
    executor_.RunReady();
    ASSERT_EQ(channel_.requests.size(), attempt + 2u);
  }
  EXPECT_TRUE(results_.empty());
  Answer(1000, WithOutcome(OUTCOME_DONE));
  EXPECT_EQ(results_.size(), 1u);
}

TEST_F(ReliableCallTest, EachAttemptGetsAFreshRequest) {
  Start();
  Answer(0, WithOutcome(OUTCOME_WAIT));
  executor_.RunReady();
  EXPECT_EQ(channel_.requests, (std::vector<std::string>{"attempt 1", "attempt 2"}));
}

TEST_F(ReliableCallTest, APeerThatIsAwayIsCalledAgainOneAttemptAtATime) {
  Start();
  Answer(0, absl::UnavailableError("gone"));
  executor_.RunReady();
  EXPECT_EQ(channel_.requests.size(), 1u) << "a pause comes first";
  executor_.AdvanceBy(kSecondUs);
  ASSERT_EQ(channel_.requests.size(), 2u);
  executor_.AdvanceBy(9 * kSecondUs);
  EXPECT_EQ(channel_.requests.size(), 2u) << "while one is open there is no other";
  Answer(1, absl::DeadlineExceededError("slow"));
  executor_.AdvanceBy(kSecondUs);
  ASSERT_EQ(channel_.requests.size(), 3u);
  Answer(2, WithText("back"));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0]->header, "back");
}

TEST_F(ReliableCallTest, SilenceEndsIt) {
  Start();
  size_t attempt = 0;
  while (results_.empty()) {
    ASSERT_LT(executor_.NowUs(), 40 * kSecondUs);
    while (attempt < channel_.open.size()) Answer(attempt++, absl::UnavailableError("gone"));
    executor_.AdvanceBy(kSecondUs / 100);
  }
  EXPECT_GE(executor_.NowUs(), 30 * kSecondUs);
  EXPECT_LE(executor_.NowUs(), 32 * kSecondUs);
  EXPECT_EQ(results_[0].status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(results_[0].status().message().find("/satrap.Test/Change: no answer for 30000 ms"),
            absl::string_view::npos);
  EXPECT_LT(attempt, 60u) << "pauses grow";
  executor_.AdvanceBy(100 * kSecondUs);
  EXPECT_EQ(channel_.requests.size(), attempt);
}

TEST_F(ReliableCallTest, WaitIsASignOfLife) {
  Start();
  executor_.AdvanceBy(29 * kSecondUs);
  Answer(0, WithOutcome(OUTCOME_WAIT));
  executor_.AdvanceBy(10 * kSecondUs);
  Answer(1, absl::DeadlineExceededError("slow"));  // 39 s after the start, 10 s after the sign
  executor_.AdvanceBy(kSecondUs);
  EXPECT_TRUE(results_.empty());
  EXPECT_EQ(channel_.requests.size(), 3u);
}

TEST_F(ReliableCallTest, OtherErrorsEndItAtOnce) {
  for (const absl::Status& error :
       {absl::InvalidArgumentError("x"), absl::NotFoundError("x"),
        absl::FailedPreconditionError("x"), absl::CancelledError("x"), absl::InternalError("x"),
        absl::ResourceExhaustedError("x"), absl::UnimplementedError("x")}) {
    Start();
    Answer(channel_.open.size() - 1, error);
    ASSERT_FALSE(results_.empty());
    EXPECT_EQ(results_.back().status(), error);
  }
  executor_.AdvanceBy(100 * kSecondUs);
  EXPECT_EQ(channel_.requests.size(), 7u);
  EXPECT_EQ(results_.size(), 7u);
}

TEST_F(ReliableCallTest, AClosedNumberIsHandedOver) {
  Start();
  Answer(0, WithOutcome(OUTCOME_OLD));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(OutcomeOf(*results_[0]), OUTCOME_OLD);
}

TEST_F(ReliableCallTest, AfterWaitOnlyTheHeaderGoes) {
  Start();
  for (int hold = 0; hold < 100; ++hold) {
    executor_.AdvanceBy(5 * kSecondUs);
    Answer(hold, WithOutcome(OUTCOME_WAIT));
    executor_.RunReady();
  }
  EXPECT_EQ(
      std::accumulate(channel_.payload_bytes.begin(), channel_.payload_bytes.end(), size_t{0}),
      1000u);
  // The receiver still has the payload after a lost attempt.
  Answer(100, absl::DeadlineExceededError("slow"));
  executor_.AdvanceBy(kSecondUs);
  ASSERT_EQ(channel_.requests.size(), 102u);
  EXPECT_EQ(channel_.payload_bytes.back(), 0u);
}

TEST_F(ReliableCallTest, BeforeTheFirstWaitEveryAttemptHasThePayload) {
  Start();
  Answer(0, absl::UnavailableError("gone"));
  executor_.AdvanceBy(kSecondUs);
  Answer(1, absl::DeadlineExceededError("slow"));
  executor_.AdvanceBy(kSecondUs);
  EXPECT_EQ(channel_.payload_bytes, (std::vector<size_t>{1000, 1000, 1000}));
}

TEST_F(ReliableCallTest, ThePayloadGoesAgainToAReceiverThatDoesNotKnowTheNumber) {
  Start();
  Answer(0, WithOutcome(OUTCOME_WAIT));
  executor_.RunReady();
  Answer(1, WithOutcome(OUTCOME_RESEND));
  EXPECT_EQ(channel_.requests.size(), 2u) << "not inside the channel's callback";
  executor_.RunReady();
  EXPECT_EQ(channel_.payload_bytes, (std::vector<size_t>{1000, 0, 1000}));
  Answer(2, WithOutcome(OUTCOME_WAIT));
  executor_.RunReady();
  EXPECT_EQ(channel_.payload_bytes.back(), 0u);
  EXPECT_TRUE(results_.empty());
}

TEST_F(ReliableCallTest, AResendOfAnAttemptThatHadThePayloadIsAnError) {
  Start();
  Answer(0, WithOutcome(OUTCOME_RESEND));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status().code(), absl::StatusCode::kInternal);
}

TEST_F(ReliableCallTest, ALargePayloadHasMoreTime) {
  payload_ = Buffer(size_t{64} << 20);
  Start();
  EXPECT_EQ(channel_.timeouts_ms[0], 10000 + 64000);
}

TEST_F(ReliableCallTest, OneLostAttemptWithALargePayloadIsNotSilence) {
  payload_ = Buffer(size_t{64} << 20);
  Start();
  executor_.AdvanceBy(channel_.timeouts_ms[0] * 1000);
  Answer(0, absl::DeadlineExceededError("lost"));
  executor_.AdvanceBy(kSecondUs);
  EXPECT_TRUE(results_.empty());
  ASSERT_EQ(channel_.requests.size(), 2u);
  // The process is suspended for less time than the attempt has, but the connection breaks
  // meanwhile.
  executor_.JumpBy(36 * kSecondUs);
  Answer(1, absl::UnavailableError("the connection was closed meanwhile"));
  executor_.AdvanceBy(kSecondUs);
  EXPECT_TRUE(results_.empty());
  EXPECT_EQ(channel_.requests.size(), 3u);
}

TEST_F(ReliableCallTest, AnAnswerThatHadBegunIsASignOfLifeAndGetsMoreTime) {
  Start();
  for (int attempt = 0; attempt < 4; ++attempt) {
    executor_.AdvanceBy(channel_.timeouts_ms.back() * 1000);
    Answer(attempt, MarkAnswerBegun(absl::DeadlineExceededError("slow")));
    executor_.AdvanceBy(kSecondUs);
  }
  EXPECT_EQ(channel_.timeouts_ms, (std::vector<int64_t>{10000, 20000, 40000, 80000, 160000}));
  EXPECT_TRUE(results_.empty());
  Answer(4, WithText("all of it"));
  EXPECT_EQ(results_.size(), 1u);
}

TEST_F(ReliableCallTest, ASignOfLifeDuringAnAttemptCountsFromWhenItCameAndGetsNoMoreTime) {
  Start();
  int attempt = 0;
  for (; attempt < 10; ++attempt) {
    executor_.AdvanceBy(9 * kSecondUs);
    Answer(attempt, MarkSignOfLife(absl::UnavailableError("cut off"), 4 * kSecondUs));
    executor_.AdvanceBy(kSecondUs);
  }
  ASSERT_TRUE(results_.empty());
  EXPECT_EQ(channel_.timeouts_ms, std::vector<int64_t>(11, 10000));
  // The last sign of life was 5 s ago.
  executor_.AdvanceBy(10 * kSecondUs);
  Answer(attempt++, absl::UnavailableError("gone"));
  executor_.AdvanceBy(11 * kSecondUs);
  Answer(attempt++, absl::UnavailableError("gone"));
  executor_.AdvanceBy(4 * kSecondUs - 1);
  EXPECT_TRUE(results_.empty());
  executor_.AdvanceBy(1);
  Answer(attempt, absl::UnavailableError("gone"));
  EXPECT_EQ(results_.size(), 1u) << "30 s without a sign";
}

TEST_F(ReliableCallTest, TheRestOfALongAttemptWithASignOfLifeCountsAsOneAttempt) {
  Start();
  for (int attempt = 0; attempt < 2; ++attempt) {
    executor_.AdvanceBy(10 * kSecondUs);
    Answer(attempt, absl::DeadlineExceededError("lost"));
    executor_.AdvanceBy(kSecondUs);
  }
  executor_.AdvanceBy(500 * kSecondUs);
  Answer(2, MarkSignOfLife(absl::DeadlineExceededError("lost"), 499 * kSecondUs));
  executor_.AdvanceBy(kSecondUs);
  EXPECT_TRUE(results_.empty());
  EXPECT_EQ(channel_.requests.size(), 4u);
}

TEST_F(ReliableCallTest, ASlowAnswerWithASignOfLifeGetsMoreTime) {
  Start();
  Answer(0, MarkSignOfLife(MarkAnswerBegun(absl::DeadlineExceededError("slow")), kSecondUs));
  executor_.AdvanceBy(kSecondUs);
  EXPECT_EQ(channel_.timeouts_ms, (std::vector<int64_t>{10000, 20000}));
}

// ---- this process is suspended: its clock jumps, and everything that was due meanwhile comes late

TEST_F(ReliableCallTest, AStandstillDuringAnAttemptIsNotThePeersSilence) {
  Start();
  executor_.AdvanceBy(5 * kSecondUs);
  executor_.JumpBy(36 * kSecondUs);
  Answer(0, absl::DeadlineExceededError("the deadline has passed meanwhile"));
  executor_.AdvanceBy(kSecondUs);
  EXPECT_TRUE(results_.empty());
  ASSERT_EQ(channel_.requests.size(), 2u);
  Answer(1, absl::UnavailableError("the connection was closed meanwhile"));
  executor_.AdvanceBy(kSecondUs);
  EXPECT_TRUE(results_.empty());
  ASSERT_EQ(channel_.requests.size(), 3u);
}

TEST_F(ReliableCallTest, AStandstillDuringAPauseIsNotThePeersSilence) {
  Start();
  Answer(0, absl::UnavailableError("gone"));
  executor_.JumpBy(36 * kSecondUs);
  executor_.RunReady();
  ASSERT_EQ(channel_.requests.size(), 2u);
  Answer(1, absl::UnavailableError("gone"));
  executor_.AdvanceBy(kSecondUs);
  EXPECT_TRUE(results_.empty());
  EXPECT_EQ(channel_.requests.size(), 3u);
}

TEST_F(ReliableCallTest, SilenceAfterAStandstillStillEndsIt) {
  Start();
  executor_.JumpBy(1000 * kSecondUs);
  const int64_t resumed_us = executor_.NowUs();
  size_t attempt = 0;
  while (results_.empty()) {
    ASSERT_LT(executor_.NowUs(), resumed_us + 40 * kSecondUs);
    while (attempt < channel_.open.size()) Answer(attempt++, absl::UnavailableError("gone"));
    executor_.AdvanceBy(kSecondUs / 100);
  }
  EXPECT_GE(executor_.NowUs(), resumed_us + 15 * kSecondUs);
}

// The channel reports an attempt twice: first as lost, then with its answer.
TEST_F(ReliableCallTest, TheFirstAnswerWinsWhicheverAttemptItIsOf) {
  Start();
  Answer(0, absl::DeadlineExceededError("slow"));
  Answer(0, WithOutcome(OUTCOME_WAIT));  // during the pause: causes no further attempt
  executor_.AdvanceBy(kSecondUs);
  ASSERT_EQ(channel_.requests.size(), 2u);
  Answer(0, absl::UnavailableError("an error of an earlier attempt decides nothing"));
  Answer(0, WithOutcome(OUTCOME_WAIT));
  executor_.AdvanceBy(kSecondUs);
  EXPECT_EQ(channel_.requests.size(), 2u);
  Answer(0, WithText("late"));
  Answer(1, WithText("second"));
  Answer(1, absl::InternalError("third"));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0]->header, "late");
}

TEST_F(ReliableCallTest, CancelEndsItWithOneResult) {
  const auto call = Start();
  call->Cancel();
  call->Cancel();
  EXPECT_TRUE(results_.empty()) << "not inside Cancel";
  executor_.RunReady();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status().code(), absl::StatusCode::kCancelled);
  Answer(0, WithText("late"));
  executor_.AdvanceBy(100 * kSecondUs);
  EXPECT_EQ(results_.size(), 1u);
  EXPECT_EQ(channel_.requests.size(), 1u);
}

TEST_F(ReliableCallTest, CancelDuringAPauseMakesNoFurtherAttempt) {
  const auto call = Start();
  Answer(0, absl::UnavailableError("gone"));
  call->Cancel();
  executor_.AdvanceBy(100 * kSecondUs);
  EXPECT_EQ(channel_.requests.size(), 1u);
  EXPECT_EQ(results_.size(), 1u);
}

TEST_F(ReliableCallTest, DoneNeverRunsInsideStart) {
  channel_.answer_inside = true;
  Start();
  EXPECT_TRUE(results_.empty());
  executor_.RunReady();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0]->header, "inside");
}

TEST_F(ReliableCallTest, ItsEndFreesWhatItHeld) {
  auto owned = std::make_shared<int>(0);
  std::make_shared<ReliableCall>(
      &executor_, &channel_, kMethod, timeouts_, [owned](bool) { return Message(); },
      [owned](auto) {})
      ->Start();
  Answer(0, WithText("done"));
  channel_.open.clear();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(OutcomeOfTest, ReadsTheFirstField) {
  NextBatchAnswerHeader header;
  header.set_handle(3);
  EXPECT_EQ(OutcomeOf(WithText(header.SerializeAsString())), OUTCOME_DONE);
  header.set_outcome(OUTCOME_WAIT);
  EXPECT_EQ(OutcomeOf(WithText(header.SerializeAsString())), OUTCOME_WAIT);
  EXPECT_EQ(OutcomeOf(WithText("")), OUTCOME_DONE);
  EXPECT_EQ(OutcomeOf(WithText("\x08")), OUTCOME_DONE);
}

}  // namespace
}  // namespace satrap::rpc
