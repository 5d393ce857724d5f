#include "deploy/launcher/pause_server.h"

#include <memory>
#include <string>
#include <thread>

#include "common/role/coordinator_client.h"
#include "common/role/ending.h"
#include "common/rpc/grpc_channel.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class PauseServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StatusAnswer status;
    status.set_run_id(7);
    status.set_state(RESTARTING);
    *status.mutable_ending() = EndingOf(Ending::MEMBER_LOST, "embedding_ps 0 is lost");
    Ending stopped = EndingOf(Ending::ASKED, "stopped on request between two generations");
    // Find a free port first, because the PauseServer cannot report which port it has.
    const auto any = rpc::GrpcServer::Start("127.0.0.1:0", rpc::EndpointOptions(), {});
    ASSERT_TRUE(any.ok()) << any.status();
    address_ = (*any)->address();
    (*any)->Shutdown(0);
    auto server = PauseServer::Start(address_, status, stopped);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = *rpc::GrpcChannel::Create(address_, rpc::EndpointOptions());
  }
  CoordinatorClient Client(uint64_t run_id = 7) {
    Envelope envelope;
    envelope.set_run_id(run_id);
    return CoordinatorClient(channel_.get(), envelope, /*timeout_ms=*/2000);
  }
  static WishRequest WishOf(WishRequest::Kind kind, uint64_t run_id = 7) {
    WishRequest wish;
    wish.set_kind(kind);
    wish.set_run_id(run_id);
    return wish;
  }

  std::string address_;
  std::unique_ptr<PauseServer> server_;
  std::unique_ptr<rpc::GrpcChannel> channel_;
};

TEST_F(PauseServerTest, TellsHowTheGenerationBeforeHasEnded) {
  const auto status = Client().Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->state(), RESTARTING);
  EXPECT_EQ(status->ending().text(), "embedding_ps 0 is lost");
  EXPECT_FALSE(server_->stop_wished());
}

TEST_F(PauseServerTest, TakesAWishToStopAndTellsThatTheRunHasStopped) {
  ASSERT_TRUE(Client().Wish(WishOf(WishRequest::STOP)).ok());
  EXPECT_TRUE(server_->stop_wished());
  EXPECT_EQ(server_->status().state(), STOPPED);
  absl::StatusOr<StatusAnswer> told = absl::UnknownError("");
  std::thread command([&] { told = Client().Status(); });
  server_->AwaitTold(/*timeout_ms=*/60000);
  command.join();
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->state(), STOPPED);
  EXPECT_EQ(told->ending().text(), "stopped on request between two generations");
  EXPECT_TRUE(Client().Wish(WishOf(WishRequest::STOP)).ok()) << "a repeated call";
}

TEST_F(PauseServerTest, WaitsForNobodyForLong) {
  ASSERT_TRUE(Client().Wish(WishOf(WishRequest::STOP)).ok());
  server_->AwaitTold(/*timeout_ms=*/1);
  EXPECT_EQ(server_->status().state(), STOPPED);
}

TEST_F(PauseServerTest, RefusesTheWishForAnotherRunAndOtherWishes) {
  EXPECT_EQ(Client().Wish(WishOf(WishRequest::STOP, /*run_id=*/8)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  // The answer is UNAVAILABLE, because the next generation may accept these wishes.
  for (const WishRequest::Kind kind : {WishRequest::CUT, WishRequest::SCALE}) {
    EXPECT_EQ(Client().Wish(WishOf(kind)).status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_FALSE(server_->stop_wished());
  EXPECT_EQ(server_->status().state(), RESTARTING);
}

TEST_F(PauseServerTest, ServesNothingElse) {
  EXPECT_FALSE(Client().Fail(NN_WORKER, 0, 0xabc, absl::InternalError("x")).ok());
}

// The next coordinator must be able to listen at the same address.
TEST_F(PauseServerTest, TheAddressIsFreeOnceItIsGone) {
  server_.reset();
  const auto next = rpc::GrpcServer::Start(address_, rpc::EndpointOptions(), {});
  EXPECT_TRUE(next.ok()) << next.status();
  if (next.ok()) (*next)->Shutdown(0);
}

}  // namespace
}  // namespace satrap
