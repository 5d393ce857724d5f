#include "common/rpc/numbered_client.h"

#include <memory>
#include <utility>
#include <vector>

#include "common/rpc/call_receiver.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

constexpr Method kMethod{"/satrap.Test/Change", true};
constexpr int64_t kSecondUs = 1000000;
constexpr size_t kPayloadBytes = 5000;

Envelope EnvelopeOf(uint64_t generation) {
  Envelope envelope;
  envelope.set_generation(generation);
  return envelope;
}

Message Answer(Outcome outcome) {
  CallOutcome header;
  header.set_outcome(outcome);
  return MessageOf(header);
}

// Passes attempts directly to a receiver, ends them at their deadlines, and counts the bytes of the
// payloads.
class DirectChannel final : public Channel {
 public:
  DirectChannel(ManualExecutor* executor, CallReceiver::Options options)
      : options_(std::move(options)), executor_(executor) {
    Restart();
  }

  void Call(const Method&, Message request, int64_t timeout_ms, Callback done) override {
    ++attempts;
    payload_bytes += request.payload.size();
    AckHeader header;
    EXPECT_TRUE(header.ParseFromString(request.header));
    headers.push_back(header);
    auto once = std::make_shared<Callback>(std::move(done));
    const auto answer = [once](absl::StatusOr<Message> outcome) {
      if (*once != nullptr) std::exchange(*once, nullptr)(std::move(outcome));
    };
    executor_->PostAfter(timeout_ms * 1000,
                         [answer] { answer(absl::DeadlineExceededError("no answer")); });
    receiver_->Receive<AckHeader>(
        std::move(request), answer,
        [this](const PendingAnswer& call, const AckHeader& header, const Buffer& payload) {
          EXPECT_EQ(payload.size(), kPayloadBytes) << "the call runs with its payload";
          running.push_back(call);
          handles.push_back(header.handle());
        });
  }

  // Replaces the receiver by a new one, which knows nothing of earlier calls.
  void Restart() {
    running.clear();
    receiver_ = std::make_unique<CallReceiver>(options_, executor_);
  }

  int attempts = 0;
  size_t payload_bytes = 0;
  std::vector<AckHeader> headers;
  std::vector<PendingAnswer> running;
  std::vector<uint64_t> handles;

 private:
  const CallReceiver::Options options_;
  ManualExecutor* const executor_;
  std::unique_ptr<CallReceiver> receiver_;
};

class NumberedClientTest : public testing::Test {
 protected:
  void Call(uint64_t handle, size_t peer = 0) {
    AckHeader header;
    header.set_handle(handle);
    client_.Call(peer, {header.SerializeAsString(), Buffer(kPayloadBytes)}, Keep());
  }
  Callback Keep() {
    return [this](absl::StatusOr<Message> result) { results_.push_back(std::move(result)); };
  }

  ManualExecutor executor_;
  DirectChannel first_{&executor_, {"store 0", EnvelopeOf(7), 3, 5 * kSecondUs}};
  DirectChannel second_{&executor_, {"store 1", EnvelopeOf(7), 3, 5 * kSecondUs}};
  NumberedClient client_{{kMethod, EnvelopeOf(7), 2, RpcTimeouts()},
                         &executor_,
                         PeersOf("store", std::vector<Channel*>{&first_, &second_})};
  std::vector<absl::StatusOr<Message>> results_;
};

TEST_F(NumberedClientTest, NumbersRunOverAllPeersAndOldestOpenMovesOn) {
  Call(10);
  Call(11, 1);
  first_.running[0].Finish(Answer(OUTCOME_DONE));
  Call(12);
  EXPECT_EQ(first_.headers[0].ShortDebugString(),
            "envelope { generation: 7 } call { sender: 2 number: 1 oldest_open: 1 } handle: 10");
  EXPECT_EQ(second_.headers[0].ShortDebugString(),
            "envelope { generation: 7 } call { sender: 2 number: 2 oldest_open: 1 } handle: 11");
  EXPECT_EQ(first_.headers[1].ShortDebugString(),
            "envelope { generation: 7 } call { sender: 2 number: 3 oldest_open: 2 } handle: 12");
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].ok());
}

TEST_F(NumberedClientTest, AHeldCallSendsItsPayloadOnce) {
  Call(10);
  executor_.AdvanceBy(1000 * kSecondUs);
  EXPECT_EQ(first_.attempts, 201);
  EXPECT_EQ(first_.payload_bytes, kPayloadBytes);
  EXPECT_TRUE(first_.headers[1].call().without_payload());
  first_.running[0].Finish(Answer(OUTCOME_DONE));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].ok());
  EXPECT_EQ(first_.handles, std::vector<uint64_t>{10}) << "it ran once";
}

TEST_F(NumberedClientTest, AReceiverThatDoesNotKnowTheNumberGetsThePayloadAgain) {
  Call(10);
  executor_.AdvanceBy(7 * kSecondUs);
  EXPECT_EQ(first_.attempts, 2);
  first_.Restart();  // the second attempt gets no answer any more
  executor_.AdvanceBy(10 * kSecondUs);
  EXPECT_EQ(first_.attempts, 4) << "the third, without the payload, was answered RESEND";
  EXPECT_EQ(first_.payload_bytes, 2 * kPayloadBytes);
  ASSERT_EQ(first_.running.size(), 1u);
  first_.running[0].Finish(Answer(OUTCOME_DONE));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].ok()) << results_[0].status();
}

TEST_F(NumberedClientTest, ACallIsForwardedUnderTheIdThatItHas) {
  CallId id;
  id.set_sender(1);
  id.set_number(41);
  id.set_oldest_open(39);
  client_.Forward(1, id, {"", Buffer(kPayloadBytes)}, Keep());
  executor_.AdvanceBy(11 * kSecondUs);
  EXPECT_EQ(second_.headers[0].ShortDebugString(),
            "envelope { generation: 7 } call { sender: 1 number: 41 oldest_open: 39 }");
  EXPECT_EQ(second_.headers[2].ShortDebugString(),
            "envelope { generation: 7 } "
            "call { sender: 1 number: 41 oldest_open: 39 without_payload: true }");
  EXPECT_EQ(second_.payload_bytes, kPayloadBytes);
}

TEST_F(NumberedClientTest, ErrorsNameMethodAndPeer) {
  Call(10, 1);
  second_.running[0].Finish(absl::NotFoundError("no such row"));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status(), absl::NotFoundError("Change to store 1: no such row"));
}

TEST_F(NumberedClientTest, AnOpenCallThatIsAnsweredOldIsAnError) {
  CallId id;
  id.set_number(9);
  id.set_oldest_open(9);
  client_.Forward(0, id, {"", Buffer(kPayloadBytes)}, Keep());
  id.set_number(8);
  id.set_oldest_open(8);
  client_.Forward(0, id, {"", Buffer(kPayloadBytes)}, Keep());
  executor_.RunReady();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status().code(), absl::StatusCode::kInternal);
  EXPECT_NE(results_[0].status().message().find("OUTCOME_OLD"), absl::string_view::npos);
}

TEST_F(NumberedClientTest, CancelAllGivesEveryOpenCallUp) {
  Call(10);
  Call(11, 1);
  client_.CancelAll();
  EXPECT_TRUE(results_.empty()) << "not inside CancelAll";
  executor_.RunReady();
  ASSERT_EQ(results_.size(), 2u);
  for (const auto& result : results_) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
  }
  executor_.AdvanceBy(100 * kSecondUs);
  EXPECT_EQ(first_.attempts + second_.attempts, 2);
}

TEST_F(NumberedClientTest, CallsMayOutliveTheirClient) {
  {
    NumberedClient client({kMethod, EnvelopeOf(7), 0, RpcTimeouts()}, &executor_,
                          {{"store 0", &first_}});
    client.Call(0, {"", Buffer(kPayloadBytes)}, Keep());
  }
  executor_.AdvanceBy(11 * kSecondUs);
  first_.running[0].Finish(Answer(OUTCOME_DONE));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].ok());
}

}  // namespace
}  // namespace satrap::rpc
