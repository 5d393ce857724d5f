#include "tests/simulation/sim_network.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace satrap::simulation {
namespace {

// Counts what reaches it and answers at once.
class CountingHandler final : public rpc::Handler {
 public:
  void Handle(const rpc::Method&, rpc::Message request, rpc::Callback respond) override {
    ++calls;
    respond(std::move(request));
  }
  int calls = 0;
};

// What became of one call.
struct CallEnd {
  absl::Status status;
  int delivered = 0;
};
CallEnd CallOnce(uint64_t seed, const NetworkFaults& faults) {
  SimLoop loop(seed);
  SimNetwork network(&loop, faults);
  CountingHandler handler;
  const std::unique_ptr<rpc::Channel> channel = network.Connect(&handler);
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

}  // namespace
}  // namespace satrap::simulation
