#include "deploy/launcher/coordinator_watch.h"

#include <memory>
#include <string>

#include "common/role/coordinator_client.h"
#include "common/rpc/grpc_server.h"
#include "common/rpc/header.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// A coordinator that answers Status with `status`, unless the call names another run.
class FakeCoordinator final : public rpc::Handler {
 public:
  StatusAnswer status;  // changed between calls
  WishRequest wish;
  absl::Status refusal;

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == kWish) {
      wish = *rpc::ParseHeader<WishRequest>(request.header);
      return refusal.ok() ? respond(rpc::MessageOf(WishAnswer())) : respond(refusal);
    }
    const auto asked = rpc::ParseHeader<StatusRequest>(request.header);
    if (asked->has_run_id() && asked->run_id() != status.run_id()) {
      return respond(absl::FailedPreconditionError("this is the coordinator of another run"));
    }
    respond(rpc::MessageOf(status));
  }
};

class CoordinatorWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Listen("127.0.0.1:0");
    Say(RUNNING);
    ASSERT_TRUE(watch_.Begin(address_).ok());
  }
  void Listen(const std::string& address) {
    const rpc::Method methods[] = {kStatus, kWish};
    auto server = rpc::GrpcServer::Start(address, rpc::EndpointOptions(),
                                         {rpc::GrpcServer::Service{methods, &coordinator_}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = server_->address();
  }
  void Say(RunState state, uint64_t run_id = 7) {
    coordinator_.status.set_run_id(run_id);
    coordinator_.status.set_state(state);
  }

  FakeCoordinator coordinator_;
  std::unique_ptr<rpc::GrpcServer> server_;
  std::string address_;
  CoordinatorWatch watch_;
};

TEST_F(CoordinatorWatchTest, KnowsNothingBeforeItHasAsked) {
  EXPECT_TRUE(watch_.IsDue());
  EXPECT_FALSE(watch_.has_answered());
  EXPECT_FALSE(watch_.has_run());
  EXPECT_FALSE(watch_.IsSilent());
  EXPECT_EQ(watch_.state(), STARTING);
}

TEST_F(CoordinatorWatchTest, KnowsTheNewestAnswerAndThatTheGenerationHasRun) {
  Say(STARTING);
  watch_.Ask();
  EXPECT_TRUE(watch_.has_answered() && watch_.answers());
  EXPECT_FALSE(watch_.has_run());
  Say(RUNNING);
  watch_.Ask();
  EXPECT_FALSE(watch_.IsDue()) << "it was just asked";
  watch_.AskSoon();
  EXPECT_TRUE(watch_.IsDue());
  Say(RESTARTING);
  watch_.Ask();
  EXPECT_TRUE(watch_.has_run()) << "it was RUNNING before";
  EXPECT_TRUE(watch_.SaysGenerationIsOver());
  EXPECT_GT(watch_.view().over_ms, 0);
  const int64_t over_ms = watch_.view().over_ms;
  watch_.Ask();
  EXPECT_EQ(watch_.view().over_ms, over_ms) << "when that was so first";
}

TEST_F(CoordinatorWatchTest, AFinishedOrStoppedRunIsNoFailure) {
  for (const RunState state : {FINISHED, STOPPED}) {
    Say(state);
    watch_.Ask();
    EXPECT_EQ(watch_.state(), state);
    EXPECT_FALSE(watch_.SaysGenerationIsOver());
  }
}

TEST_F(CoordinatorWatchTest, TheCoordinatorOfAnotherRunDoesNotAnswer) {
  watch_.Ask();
  Say(FINISHED, /*run_id=*/8);
  watch_.Ask();
  EXPECT_FALSE(watch_.answers());
  EXPECT_EQ(watch_.state(), RUNNING) << "what it knew before";
  ASSERT_TRUE(watch_.Begin(address_).ok());
  watch_.Ask();
  EXPECT_FALSE(watch_.answers()) << "nor in the next generation";
  Say(STARTING);
  watch_.Ask();
  EXPECT_TRUE(watch_.answers());
}

TEST_F(CoordinatorWatchTest, OfTheGenerationBeforeOnlyTheRunIsKept) {
  Say(FAILED);
  coordinator_.status.set_generation(3);
  watch_.Ask();
  ASSERT_TRUE(watch_.Begin("127.0.0.1:1").ok());
  EXPECT_EQ(watch_.status().run_id(), 7u);
  EXPECT_FALSE(watch_.status().has_generation());
  EXPECT_FALSE(watch_.has_answered() || watch_.answers() || watch_.SaysGenerationIsOver());
  EXPECT_EQ(watch_.view().over_ms, 0);
  EXPECT_TRUE(watch_.IsDue());
}

TEST_F(CoordinatorWatchTest, OneThatIsGoneDoesNotAnswerAndIsNotSilentYet) {
  watch_.Ask();
  server_->Shutdown(0);
  server_.reset();
  watch_.Ask();
  EXPECT_FALSE(watch_.answers());
  EXPECT_TRUE(watch_.has_answered());
  EXPECT_FALSE(watch_.IsSilent());
  Listen(address_);
  watch_.Ask();
  for (int i = 0; i < 20 && !watch_.answers(); ++i) watch_.Ask();
  EXPECT_TRUE(watch_.answers());
}

TEST_F(CoordinatorWatchTest, AWishToStopIsForTheRunThatIsWatched) {
  watch_.Ask();
  StopRequest stop;
  stop.Begin(/*stop_seconds=*/60);
  coordinator_.refusal = absl::FailedPreconditionError("a change of size is already in progress");
  EXPECT_FALSE(watch_.TryStop(&stop));
  EXPECT_EQ(stop.waits_for(), "coordinator: a change of size is already in progress");
  coordinator_.refusal = absl::OkStatus();
  EXPECT_TRUE(watch_.TryStop(&stop));
  EXPECT_EQ(coordinator_.wish.run_id(), 7u);
  EXPECT_EQ(coordinator_.wish.kind(), WishRequest::STOP);
}

}  // namespace
}  // namespace satrap
