#include "deploy/story/pod_stop.h"

#include <csignal>
#include <functional>
#include <string>

#include "deploy/cli/testing/fake_run.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class PodStopTest : public FakeRunTest {
 protected:
  absl::StatusOr<std::string> Stop(uint64_t submission = 1, int64_t limit_ms = 60000) {
    return StopFromPod(dir_, submission, coordinator(), limit_ms, [this](int64_t) {
      if (on_wait_) on_wait_();
      return signal_;
    });
  }
  std::function<void()> on_wait_;
  int signal_ = 0;
};

TEST_F(PodStopTest, ARunIsAskedOnceAndHasStoppedWhenItsLogSaysSo) {
  Append("generation { generation: 1 submission: 1 }");
  Script({"state: RUNNING generation: 1"});
  int waits = 0;
  on_wait_ = [&] {
    if (++waits == 3) Append("end { state: STOPPED submission: 1 ending { text: 'after cut 7' } }");
  };
  const auto stopped = Stop();
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(*stopped, "the run has stopped: after cut 7");
  ASSERT_THAT(Wishes(), SizeIs(1));
  EXPECT_EQ(Wishes()[0].kind(), WishRequest::STOP);
}

TEST_F(PodStopTest, AnotherGenerationIsAskedAgainAndSoIsOneThatRefuses) {
  Append("generation { generation: 1 submission: 1 }");
  Script({"state: RUNNING generation: 1", "state: RESTARTING generation: 1",
          "state: STARTING generation: 2", "state: RUNNING generation: 2"});
  int wishes = 0;
  on_wish_ = [&](const WishRequest&) -> absl::StatusOr<uint64_t> {
    if (++wishes == 2) return absl::FailedPreconditionError("the run changes its size");
    return 1;
  };
  on_wait_ = [&] {
    if (wishes == 3) Append("end { state: STOPPED submission: 1 }");
  };
  EXPECT_TRUE(Stop().ok());
  EXPECT_THAT(Wishes(), SizeIs(3));
}

TEST_F(PodStopTest, WhatHasEndedOtherwiseIsNotStopped) {
  Append("generation { generation: 1 submission: 1 }");
  Append("end { state: FAILED submission: 1 ending { text: 'the disk is full' } }");
  EXPECT_EQ(Stop().status(), absl::FailedPreconditionError("the run has failed: the disk is full"));
  Append("generation { generation: 2 submission: 2 }");
  Append("end { state: FINISHED submission: 2 }");
  EXPECT_THAT(Stop(2).status().message(), HasSubstr("has finished"));
  EXPECT_EQ(Stop(1).status(),
            absl::FailedPreconditionError("the run continues as a later submission"));
  EXPECT_THAT(Wishes(), SizeIs(0));
}

TEST_F(PodStopTest, AResumeThatHasNotBegunYetIsStoppedAlthoughTheSubmissionBeforeWasStopped) {
  Append("generation { generation: 1 submission: 1 }");
  Append("end { state: STOPPED submission: 1 ending { text: 'after cut 7' } }");
  Script({"state: STARTING generation: 2"});
  int waits = 0;
  on_wait_ = [&] {
    if (++waits == 1) Append("generation { generation: 2 submission: 2 }");
    if (waits == 2) Append("end { state: STOPPED submission: 2 ending { text: 'after cut 9' } }");
  };
  const auto stopped = Stop(2);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(*stopped, "the run has stopped: after cut 9");
  EXPECT_THAT(Wishes(), SizeIs(1));
}

TEST_F(PodStopTest, ACoordinatorThatIsAwayIsWaitedForUntilTheLimit) {
  Append("generation { generation: 1 submission: 1 }");
  EndCoordinator();
  const absl::Status status = Stop(/*submission=*/1, /*limit_ms=*/1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("coordinator has not answered within"));
}

TEST_F(PodStopTest, ASignalEndsTheWait) {
  Append("generation { generation: 1 submission: 1 }");
  Script({"state: RUNNING generation: 1"});
  signal_ = SIGINT;
  EXPECT_EQ(Stop().status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace satrap
