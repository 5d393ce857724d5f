#include "common/rpc/reliable_call.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

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

// Keeps attempts until the test answers them.
class ScriptedChannel final : public Channel {
 public:
  void Call(const Method& method, Message request, int64_t timeout_ms, Callback done) override {
    EXPECT_TRUE(method == kMethod);
    requests.push_back(request.header);
    timeouts_ms.push_back(timeout_ms);
    open.push_back(std::move(done));
    if (answer_inside) std::exchange(open.back(), nullptr)(WithText("inside"));
  }

  std::vector<std::string> requests;
  std::vector<int64_t> timeouts_ms;
  std::vector<Callback> open;  // by attempt, from 0
  bool answer_inside = false;
};

class ReliableCallTest : public testing::Test {
 protected:
  std::shared_ptr<CallHandle> Start() {
    return StartReliableCall(
        &executor_, &channel_, kMethod, timeouts_,
        [this] { return WithText("attempt " + std::to_string(++made_)); },
        [this](absl::StatusOr<Message> result) { results_.push_back(std::move(result)); });
  }

  void Answer(int attempt, absl::StatusOr<Message> outcome) {
    channel_.open.at(attempt)(std::move(outcome));
  }

  ManualExecutor executor_;
  ScriptedChannel channel_;
  RpcTimeouts timeouts_;
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
    Answer(attempt, WithOutcome(WAIT));
    EXPECT_EQ(channel_.requests.size(), attempt + 1u) << "not inside the channel's callback";
    executor_.RunReady();
    ASSERT_EQ(channel_.requests.size(), attempt + 2u);
  }
  EXPECT_TRUE(results_.empty());
  Answer(1000, WithOutcome(DONE));
  EXPECT_EQ(results_.size(), 1u);
}

TEST_F(ReliableCallTest, EachAttemptGetsAFreshRequest) {
  Start();
  Answer(0, WithOutcome(WAIT));
  executor_.RunReady();
  EXPECT_EQ(channel_.requests, (std::vector<std::string>{"attempt 1", "attempt 2"}));
}

TEST_F(ReliableCallTest, APeerThatIsAwayIsAskedAgainOneAttemptAtATime) {
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
  Answer(0, WithOutcome(WAIT));
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

TEST_F(ReliableCallTest, OldIsHandedOver) {
  Start();
  Answer(0, WithOutcome(OLD));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(OutcomeOf(*results_[0]), OLD);
}

// A channel that reports an attempt twice: first as lost, then with its answer.
TEST_F(ReliableCallTest, TheFirstAnswerWinsWhicheverAttemptItIsOf) {
  Start();
  Answer(0, absl::DeadlineExceededError("slow"));
  executor_.AdvanceBy(kSecondUs);
  ASSERT_EQ(channel_.requests.size(), 2u);
  Answer(0, absl::UnavailableError("an error of an earlier attempt decides nothing"));
  Answer(0, WithOutcome(WAIT));
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
  StartReliableCall(
      &executor_, &channel_, kMethod, timeouts_, [owned] { return Message(); }, [owned](auto) {});
  Answer(0, WithText("done"));
  channel_.open.clear();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(OutcomeOfTest, ReadsTheFirstField) {
  NextBatchAnswerHeader header;
  header.set_handle(3);
  EXPECT_EQ(OutcomeOf(WithText(header.SerializeAsString())), DONE);
  header.set_outcome(WAIT);
  EXPECT_EQ(OutcomeOf(WithText(header.SerializeAsString())), WAIT);
  EXPECT_EQ(OutcomeOf(WithText("")), DONE);
  EXPECT_EQ(OutcomeOf(WithText("\x08")), DONE);
}

}  // namespace
}  // namespace satrap::rpc
