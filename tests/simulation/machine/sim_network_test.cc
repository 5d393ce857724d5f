#include "tests/simulation/machine/sim_network.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace satrap::simulation {
namespace {

// Counts the calls that reach it and answers them at once.
class CountingHandler final : public rpc::Handler {
 public:
  void Handle(const rpc::Method&, rpc::Message request, rpc::Callback respond) override {
    ++calls;
    respond(std::move(request));
  }
  int calls = 0;
};

// How one call ended.
struct CallEnd {
  absl::Status status;
  int delivered = 0;
};
CallEnd CallOnce(uint64_t seed, const NetworkFaults& faults) {
  SimLoop loop(seed);
  SimNetwork network(&loop, faults);
  CountingHandler handler;
  const SimNetwork::Address address = network.NewAddress();
  network.Listen(address, nullptr, &handler);
  const std::unique_ptr<rpc::Channel> channel = network.Connect(address);
  CallEnd end;
  bool done = false;
  channel->Call({"/test/Call", false}, {}, 60, [&](absl::StatusOr<rpc::Message> answer) {
    end.status = answer.status();
    done = true;
  });
  EXPECT_TRUE(loop.RunUntil([&] { return done; }, 1000000, 1000));
  end.delivered = handler.calls;
  return end;
}

TEST(SimNetworkTest, AnswersUnavailableBeforeTheReceiverSawACallAndAfterItRanIt) {
  NetworkFaults faults;
  faults.lose = faults.repeat = faults.very_late = 0;
  faults.unavailable = 0.5;
  int unseen = 0, ran = 0, answered = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const CallEnd end = CallOnce(seed, faults);
    if (end.status.ok()) {
      ++answered;
    } else {
      EXPECT_TRUE(absl::IsUnavailable(end.status)) << end.status;
      ++(end.delivered == 0 ? unseen : ran);
    }
  }
  EXPECT_GT(unseen, 0);
  EXPECT_GT(ran, 0);
  EXPECT_GT(answered, 0);
}

TEST(SimNetworkTest, EndsALostCallAtItsTimeout) {
  NetworkFaults faults;
  faults.lose = 1;
  faults.unavailable = 0;
  EXPECT_TRUE(absl::IsDeadlineExceeded(CallOnce(1, faults).status));
}

TEST(SimNetworkTest, RefusesLargeMessagesOfBulkMethods) {
  NetworkFaults faults;
  faults.lose = faults.repeat = faults.very_late = faults.unavailable = 0;
  SimLoop loop(1);
  SimNetwork network(&loop, faults, /*max_message_bytes=*/100);
  CountingHandler handler;
  const SimNetwork::Address address = network.NewAddress();
  network.Listen(address, nullptr, &handler);
  const std::unique_ptr<rpc::Channel> channel = network.Connect(address);
  const auto call = [&](bool bulk, size_t payload_bytes) {
    absl::Status status = absl::UnknownError("");
    channel->Call({"/test/Call", bulk}, {std::string(bulk ? 10 : 200, 'h'), Buffer(payload_bytes)},
                  60, [&](absl::StatusOr<rpc::Message> answer) { status = answer.status(); });
    EXPECT_TRUE(loop.RunUntil([&] { return !absl::IsUnknown(status); }, 1000000, 1000));
    return status;
  };
  EXPECT_TRUE(call(true, 80).ok());
  EXPECT_EQ(call(true, 90).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(handler.calls, 1);
  EXPECT_TRUE(call(false, 0).ok()) << "calls of the coordinator have no such limit";
}

// A network that only delays messages, for the tests of deaths.
class Deaths : public testing::Test {
 protected:
  Deaths() : network_(&loop_, Reliable()), address_(network_.NewAddress()) {}

  static NetworkFaults Reliable() {
    NetworkFaults faults;
    faults.lose = faults.repeat = faults.very_late = faults.unavailable = 0;
    return faults;
  }
  // Makes one call of `from`. Each answer, of any kind, adds 1 to `answers_`.
  void Call(SimProcess* from) {
    channels_.push_back(network_.Connect(address_, from));
    channels_.back()->Call({"/test/Call", false}, {}, 60,
                           [this](absl::StatusOr<rpc::Message> answer) {
                             ++answers_;
                             status_ = answer.status();
                           });
  }
  void Run() {
    loop_.RunUntil([] { return false; }, 10000000, 1000);
  }

  SimLoop loop_{1};
  SimNetwork network_;
  const SimNetwork::Address address_;
  std::vector<std::unique_ptr<rpc::Channel>> channels_;
  CountingHandler first_, second_;
  SimProcess caller_{&loop_, 1, "caller"};
  SimProcess old_{&loop_, 1, "old"};
  SimProcess new_{&loop_, 2, "new"};
  int answers_ = 0;
  absl::Status status_;
};

TEST_F(Deaths, DeliversTheRequestsOfADeadProcessAndAnswersNobody) {
  network_.Listen(address_, &old_, &first_);
  Call(&caller_);
  caller_.Kill();
  Run();
  EXPECT_EQ(first_.calls, 1);
  EXPECT_EQ(answers_, 0);
}

TEST_F(Deaths, SendsNothingForADeadProcess) {
  network_.Listen(address_, &old_, &first_);
  caller_.Kill();
  Call(&caller_);
  Run();
  EXPECT_EQ(first_.calls, 0);
}

TEST_F(Deaths, EndsACallToADeadProcess) {
  network_.Listen(address_, &old_, &first_);
  old_.Kill();
  for (int i = 0; i < 20; ++i) Call(&caller_);
  Run();
  EXPECT_EQ(first_.calls, 0);
  EXPECT_EQ(answers_, 20);
  EXPECT_FALSE(status_.ok());
}

TEST_F(Deaths, DeliversALateRequestToTheNextProcessAtTheAddress) {
  network_.Listen(address_, &old_, &first_);
  Call(&caller_);
  old_.Kill();
  network_.Listen(address_, &new_, &second_);
  Run();
  EXPECT_EQ(first_.calls, 0);
  EXPECT_EQ(second_.calls, 1);
  EXPECT_EQ(network_.counts().to_the_next, 1);
}

TEST_F(Deaths, LetsAnOlderProcessReachBothAndANewOneOnlyItsOwnLife) {
  network_.Listen(address_, &old_, &first_);
  network_.Listen(address_, &new_, &second_);
  for (int i = 0; i < 20; ++i) Call(&caller_);
  Run();
  EXPECT_GT(first_.calls, 0);
  EXPECT_GT(second_.calls, 0);
  const int before = first_.calls;
  SimProcess newer(&loop_, 2, "newer");
  for (int i = 0; i < 20; ++i) Call(&newer);
  Run();
  EXPECT_EQ(first_.calls, before);
}

TEST_F(Deaths, LetsAProcessThatStandsStillGoOnLater) {
  network_.Listen(address_, &old_, &first_);
  old_.StandStill(30000);
  Call(&caller_);
  loop_.PostAfter(29000, [this] { EXPECT_EQ(first_.calls, 0); });
  Run();
  EXPECT_EQ(first_.calls, 1);
  EXPECT_EQ(answers_, 1);
}

TEST_F(Deaths, DiesInTheMiddleOfItsCode) {
  network_.Listen(address_, &old_, &first_);
  caller_.KillAtAct(3);
  int runs = 0;
  caller_.Post([&] {
    Call(&caller_);                      // the second act
    caller_.Post([&] { runs += 100; });  // the third, which it does not live to do
    Call(&caller_);
    ++runs;
  });
  Run();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(first_.calls, 1);
  EXPECT_EQ(answers_, 0);
}

TEST_F(Deaths, AnswersNothingOnceItIsDead) {
  network_.Listen(address_, &old_, &first_);
  old_.KillAtAct(1);
  Call(&caller_);
  Run();
  EXPECT_EQ(first_.calls, 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status_)) << status_;
}

TEST_F(Deaths, RunsNoTaskOfADeadProcess) {
  int runs = 0;
  caller_.Post([&] { ++runs; });
  Run();
  EXPECT_EQ(runs, 1);
  caller_.PostAfter(1000, [&] { ++runs; });
  caller_.Kill();
  caller_.Post([&] { ++runs; });
  Run();
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace satrap::simulation
