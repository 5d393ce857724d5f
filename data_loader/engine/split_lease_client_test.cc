#include "data_loader/engine/split_lease_client.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "common/role/coordinator_client.h"
#include "common/testing/manual_executor.h"
#include "proto/control.pb.h"

namespace satrap {
namespace {

// Keeps the calls until the test answers them.
class FakeCoordinator final : public rpc::Channel {
 public:
  void Call(const rpc::Method& method, rpc::Message request, int64_t, rpc::Callback done) override {
    EXPECT_TRUE(method == kLeaseSplit);
    requests.emplace_back();
    EXPECT_TRUE(requests.back().ParseFromString(request.header));
    callbacks.push_back(std::move(done));
  }
  void Answer(size_t call, bool ended, uint32_t split) {
    LeaseSplitAnswer answer;
    answer.set_outcome(OUTCOME_DONE);
    answer.set_ended(ended);
    answer.set_split(split);
    callbacks[call](rpc::Message{answer.SerializeAsString(), Buffer()});
  }

  std::vector<LeaseSplitRequest> requests;
  std::vector<rpc::Callback> callbacks;
};

class SplitLeaseTest : public testing::Test {
 protected:
  SplitLeaseTest() : lease_(Options(), &executor_, &coordinator_) {}

  static SplitLeaseClient::Options Options() {
    SplitLeaseClient::Options options;
    options.envelope.set_generation(3);
    options.loader_index = 2;
    options.num_splits = 10;
    return options;
  }
  void Lease(uint32_t epoch) {
    lease_.NextSplit(epoch, [this](absl::StatusOr<absl::optional<uint32_t>> split) {
      answers_.push_back(std::move(split));
    });
  }

  ManualExecutor executor_;
  FakeCoordinator coordinator_;
  SplitLeaseClient lease_;
  std::vector<absl::StatusOr<absl::optional<uint32_t>>> answers_;
};

TEST_F(SplitLeaseTest, LeasesForTheEpochAndGivesWhatIsLeased) {
  Lease(4);
  ASSERT_EQ(coordinator_.requests.size(), 1u);
  const LeaseSplitRequest& request = coordinator_.requests[0];
  EXPECT_EQ(request.epoch(), 4u);
  EXPECT_EQ(request.num_splits(), 10u);
  EXPECT_EQ(request.call().sender(), 2u);
  EXPECT_EQ(request.call().number(), 1u);
  EXPECT_EQ(request.envelope().generation(), 3u);
  coordinator_.Answer(0, false, 7);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(**answers_[0], 7u);
  Lease(4);
  EXPECT_EQ(coordinator_.requests[1].call().number(), 2u);
  EXPECT_EQ(coordinator_.requests[1].call().oldest_open(), 2u);
  coordinator_.Answer(1, true, 0);
  EXPECT_FALSE(answers_[1]->has_value());
}

TEST_F(SplitLeaseTest, RepeatsALostCallUnderItsNumber) {
  Lease(0);
  coordinator_.callbacks[0](absl::UnavailableError("lost"));
  executor_.AdvanceBy(1000 * 1000);
  ASSERT_EQ(coordinator_.requests.size(), 2u);
  EXPECT_EQ(coordinator_.requests[1].call().number(), 1u);
}

TEST_F(SplitLeaseTest, ASplitThatDoesNotExistIsAnError) {
  Lease(0);
  coordinator_.Answer(0, false, 10);
  EXPECT_EQ(answers_[0].status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace satrap
