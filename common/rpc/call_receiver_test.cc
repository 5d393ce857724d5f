#include "common/rpc/call_receiver.h"

#include <utility>
#include <vector>

#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

class CallReceiverTest : public testing::Test {
 protected:
  static AckHeader HeaderOf(uint32_t sender, uint64_t number, Stream stream = TRAIN_STREAM) {
    AckHeader header;
    header.mutable_envelope()->set_job_fingerprint(5);
    header.mutable_call()->set_sender(sender);
    header.mutable_call()->set_number(number);
    header.mutable_call()->set_oldest_open(1);
    header.set_stream(stream);
    return header;
  }
  static Envelope ThisRun() { return HeaderOf(0, 1).envelope(); }

  void Receive(Message request) {
    receiver_.Receive<AckHeader>(
        std::move(request),
        [this](absl::StatusOr<Message> answer) { answers_.push_back(std::move(answer)); },
        [this](const PendingAnswer& call, const AckHeader&, const Buffer&) {
          running_.push_back(call);
        });
  }
  void ExpectRefused(Message request, absl::StatusCode code) {
    answers_.clear();
    Receive(std::move(request));
    ASSERT_EQ(answers_.size(), 1u);
    EXPECT_EQ(answers_[0].status().code(), code) << answers_[0].status();
    EXPECT_TRUE(running_.empty());
  }

  ManualExecutor executor_;
  CallReceiver receiver_{{"embedding_worker 1", ThisRun(), 2, 5000000}, &executor_};
  std::vector<PendingAnswer> running_;
  std::vector<absl::StatusOr<Message>> answers_;
};

TEST_F(CallReceiverTest, ACallRunsOnceForEachSenderAndStream) {
  Receive(MessageOf(HeaderOf(0, 1)));
  Receive(MessageOf(HeaderOf(0, 1)));
  EXPECT_EQ(running_.size(), 1u);
  Receive(MessageOf(HeaderOf(1, 1)));
  Receive(MessageOf(HeaderOf(0, 1, VALID_STREAM)));
  ASSERT_EQ(running_.size(), 3u);
  EXPECT_EQ(running_[1].sender, 1u);
  EXPECT_TRUE(answers_.empty());
  running_[0].Finish(Message{"done", Buffer()});
  EXPECT_EQ(answers_.size(), 2u) << "both attempts";
}

TEST_F(CallReceiverTest, WhatIsRefusedLeavesTheNumberFree) {
  ExpectRefused({"\xff\xff", Buffer()}, absl::StatusCode::kInvalidArgument);
  AckHeader header = HeaderOf(0, 1);
  header.mutable_envelope()->set_job_fingerprint(6);
  ExpectRefused(MessageOf(header), absl::StatusCode::kFailedPrecondition);
  ExpectRefused(MessageOf(HeaderOf(2, 1)), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(answers_[0].status().message().find("call.sender: 2"), absl::string_view::npos);
  Receive(MessageOf(HeaderOf(0, 1)));
  EXPECT_EQ(running_.size(), 1u);
}

TEST_F(CallReceiverTest, ACallThatIsNotKnownMustBringItsPayload) {
  AckHeader header = HeaderOf(0, 1);
  header.mutable_call()->set_without_payload(true);
  Receive(MessageOf(header));
  ASSERT_EQ(answers_.size(), 1u);
  CallOutcome outcome;
  ASSERT_TRUE(outcome.ParseFromString(answers_[0]->header));
  EXPECT_EQ(outcome.outcome(), OUTCOME_RESEND);
  EXPECT_TRUE(running_.empty());
}

}  // namespace
}  // namespace satrap::rpc
