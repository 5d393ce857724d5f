#include "deploy/cli/run_connection.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "deploy/cli/testing/fake_run.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

class RunConnectionTest : public FakeRunTest {
 protected:
  // Makes a wish of the given kind. Whatever the kind, waits until the coordinator's fulfilled_wish
  // has reached the wish's number.
  absl::StatusOr<StatusAnswer> Fulfil(WishRequest::Kind kind) {
    return Fulfil(kind, RunConnection::Open(dir_));
  }
  // As Fulfil, but as a command in a pod of that submission of the run.
  absl::StatusOr<StatusAnswer> FulfilInPod(WishRequest::Kind kind, uint64_t submission) {
    const std::string coordinator = absl::StrCat(
        "unix:", std::filesystem::read_symlink(dir_ + "/sockets").string(), "/coordinator_0");
    return Fulfil(kind, RunConnection::OpenInPod(dir_, submission, coordinator));
  }

 private:
  static absl::StatusOr<StatusAnswer> Fulfil(
      WishRequest::Kind kind, const absl::StatusOr<std::unique_ptr<RunConnection>>& connection) {
    if (!connection.ok()) return connection.status();
    WishRequest request;
    request.set_kind(kind);
    return (*connection)
        ->Fulfil(request, [](const StatusAnswer& status, uint64_t generation, uint64_t wish) {
          return status.generation() == generation && status.fulfilled_wish() >= wish;
        });
  }
};

TEST_F(RunConnectionTest, ARunThatNobodyRunsIsNotReached) {
  Release();
  const auto connection = RunConnection::Open(dir_);
  EXPECT_EQ(connection.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(connection.status().message(),
              AllOf(HasSubstr("nothing runs in " + dir_), HasSubstr("`satrap status " + dir_),
                    HasSubstr("`satrap resume " + dir_)));
}

TEST_F(RunConnectionTest, ACoordinatorThatDoesNotAnswerIsAnErrorAfterSeconds) {
  Script({kSilent});
  const auto connection = RunConnection::Open(dir_);
  ASSERT_TRUE(connection.ok()) << connection.status();
  const auto start = Clock::now();
  EXPECT_EQ((*connection)->Status().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(6));
}

TEST_F(RunConnectionTest, ACoordinatorThatIsStartedAgainIsReachedOnceItAnswers) {
  EndCoordinator();
  const auto connection = RunConnection::Open(dir_);
  ASSERT_TRUE(connection.ok()) << connection.status();
  // After three failures a gRPC channel waits for seconds before it connects again.
  for (int i = 0; i < 3; ++i) EXPECT_FALSE((*connection)->Status().ok());
  StartCoordinator();
  EXPECT_TRUE((*connection)->Status().ok());
}

TEST_F(RunConnectionTest, ACutIsAskedForOnceAndWhenTheRunHasBegun) {
  Script({"state: RESTARTING generation: 1", "state: STARTING generation: 2",
          "state: RUNNING generation: 2"});
  on_wish_ = [this](const WishRequest&) {
    EXPECT_EQ(StatusCalls(), 3) << "before, there was nothing to cut";
    Script({"state: RUNNING generation: 2", "state: RUNNING generation: 2 fulfilled_wish: 2",
            "state: RUNNING generation: 2 fulfilled_wish: 3 job_name: 'done'"});
    return 3;
  };
  const auto fulfilled = Fulfil(WishRequest::CUT);
  ASSERT_TRUE(fulfilled.ok()) << fulfilled.status();
  EXPECT_EQ(fulfilled->job_name(), "done");
  ASSERT_THAT(Wishes(), SizeIs(1));
  EXPECT_EQ(Wishes()[0].kind(), WishRequest::CUT);
  EXPECT_EQ(Wishes()[0].run_id(), kRunId);
}

TEST_F(RunConnectionTest, ARunMayBeStoppedBeforeItHasBegun) {
  Script({"state: STARTING generation: 1"});
  on_wish_ = [this](const WishRequest&) {
    Script({"state: STOPPED generation: 1"});
    return 1;
  };
  const auto stopped = Fulfil(WishRequest::STOP);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(stopped->state(), STOPPED);
}

TEST_F(RunConnectionTest, ARunMayBeStoppedBetweenTwoGenerations) {
  Script({"state: RESTARTING generation: 1"});
  // First the coordinator refuses the wish, because its generation is over; then the launcher
  // accepts it.
  on_wish_ = [this](const WishRequest&) -> absl::StatusOr<uint64_t> {
    on_wish_ = [this](const WishRequest&) {
      Script({"state: STOPPED generation: 1"});
      return 1;
    };
    return absl::FailedPreconditionError("this generation is over");
  };
  const auto stopped = Fulfil(WishRequest::STOP);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(stopped->state(), STOPPED);
  EXPECT_THAT(Wishes(), SizeIs(2));
}

TEST_F(RunConnectionTest, AStopThatWasTakenByAGenerationThatIsOverIsMadeAgain) {
  on_wish_ = [this](const WishRequest&) {
    Script({"state: RUNNING generation: 1", "state: RESTARTING generation: 1"});
    on_wish_ = [this](const WishRequest&) {
      Script({"state: STOPPED generation: 1"});
      return 1;
    };
    return 1;
  };
  EXPECT_TRUE(Fulfil(WishRequest::STOP).ok());
  EXPECT_THAT(Wishes(), SizeIs(2));
}

TEST_F(RunConnectionTest, AWishThatEndsWithItsGenerationIsMadeAgain) {
  on_wish_ = [this](const WishRequest&) {
    // Each generation numbers its wishes from 1, so a wish's number means nothing without its
    // generation.
    Script({"state: RESTARTING generation: 1", "state: STARTING generation: 2",
            "state: RUNNING generation: 2 fulfilled_wish: 9"});
    on_wish_ = [this](const WishRequest&) {
      Script({"state: RUNNING generation: 2 fulfilled_wish: 1"});
      return 1;
    };
    return 1;
  };
  EXPECT_TRUE(Fulfil(WishRequest::CUT).ok());
  EXPECT_THAT(Wishes(), SizeIs(2));
}

TEST_F(RunConnectionTest, WhoeverGetsNoAnswerAsksAgain) {
  Script({kSilent, "state: RUNNING generation: 1"});
  silent_wishes_ = 1;
  on_wish_ = [this](const WishRequest&) {
    Script({"state: RUNNING generation: 1 fulfilled_wish: 1"});
    return 1;
  };
  EXPECT_TRUE(Fulfil(WishRequest::CUT).ok());
  EXPECT_THAT(Wishes(), SizeIs(2));
}

TEST_F(RunConnectionTest, TheEndOfTheRunEndsTheWait) {
  Script({"state: FAILED ending { text: 'out of luck' }"});
  EXPECT_EQ(Fulfil(WishRequest::CUT).status(),
            absl::AbortedError("the run has failed: out of luck"));
  Script({"state: FINISHED"});
  EXPECT_EQ(Fulfil(WishRequest::STOP).status(),
            absl::FailedPreconditionError("the run has finished"));
  is_released_ = false;
  Script({"state: STOPPED"});
  EXPECT_EQ(Fulfil(WishRequest::SCALE).status(),
            absl::FailedPreconditionError("the run has been stopped"));
  EXPECT_TRUE(Fulfil(WishRequest::STOP).ok()) << "perhaps by this wish, whose answer was lost";
  EXPECT_THAT(Wishes(), SizeIs(0));
  Script({kGone});
  EXPECT_EQ(Fulfil(WishRequest::CUT).status(),
            absl::UnavailableError("the run in " + dir_ + " has ended"));
}

TEST_F(RunConnectionTest, ARefusalIsTold) {
  on_wish_ = [](const WishRequest&) {
    return absl::FailedPreconditionError("the run takes no more cuts");
  };
  const absl::Status refused = Fulfil(WishRequest::CUT).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("the run takes no more cuts"));
  EXPECT_THAT(Wishes(), SizeIs(1));
  on_wish_ = [](const WishRequest&) { return absl::InvalidArgumentError("another run"); };
  EXPECT_THAT(Fulfil(WishRequest::STOP).status().message(), HasSubstr("another run"));
}

TEST_F(RunConnectionTest, AStopIsAskedForUntilAChangeOfSizeIsOver) {
  on_wish_ = [this](const WishRequest&) -> absl::StatusOr<uint64_t> {
    on_wish_ = [this](const WishRequest&) {
      Script({"state: STOPPED generation: 1"});
      return 1;
    };
    return absl::FailedPreconditionError("the run is being scaled");
  };
  EXPECT_TRUE(Fulfil(WishRequest::STOP).ok());
  EXPECT_THAT(Wishes(), SizeIs(2));
}

TEST_F(RunConnectionTest, ARunInPodsIsReachedWithoutALauncherUntilItsSubmissionIsOver) {
  Append("generation { generation: 1 submission: 1 }");
  Append("end { state: STOPPED submission: 1 }");
  Script(
      {kSilent, "state: RUNNING generation: 2", "state: RUNNING generation: 2 fulfilled_wish: 1"});
  const auto taken = FulfilInPod(WishRequest::CUT, /*submission=*/2);
  EXPECT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(Wishes(), SizeIs(1));
}

TEST_F(RunConnectionTest, ARunInPodsThatHasEndedIsNotWaitedFor) {
  Append("generation { generation: 1 submission: 1 }");
  Append("end { state: STOPPED submission: 1 }");
  EndCoordinator();
  const absl::Status ended = FulfilInPod(WishRequest::CUT, /*submission=*/1).status();
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(ended.message(), HasSubstr("has ended"));
}

}  // namespace
}  // namespace satrap
