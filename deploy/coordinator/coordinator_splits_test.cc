// How the coordinator's engine fixes the list of a run's files.

#include <string>

#include "common/checkpoint/order_fingerprint.h"
#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CoordinatorSplitsTest : public CoordinatorFixture {
 protected:
  absl::StatusOr<SplitList> Fix(int loader, uint64_t bytes) {
    FixSplitsRequest request;
    *request.mutable_envelope() = ThisRun();
    request.set_loader(static_cast<uint32_t>(loader));
    FileIdentity* file = request.mutable_splits()->add_streams()->add_files();
    file->set_path("day_0.csv");
    file->set_bytes(bytes);
    const auto answer = Call<FixSplitsAnswer>(kFixSplits, request);
    if (!answer.ok()) return answer.status();
    return answer->splits();
  }
};

TEST_F(CoordinatorSplitsTest, TheFirstListIsTheRunsAndGivesTheOrderFingerprint) {
  RegisterAll();
  const auto list = Fix(0, 10);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_FALSE(Heartbeat(NN_WORKER, 0)->has_order_fingerprint()) << "not yet running";
  BeatAll();
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->order_fingerprint(), OrderFingerprint(job_, *list));
  EXPECT_EQ(disk_.List("/runs/small/splits")->size(), 1u);
}

TEST_F(CoordinatorSplitsTest, LoadersOfAGenerationMustAgree) {
  ASSERT_TRUE(Fix(0, 10).ok());
  EXPECT_TRUE(Fix(1, 10).ok());
  const absl::Status status = Fix(2, 11).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("data_loader 2 sees 11 bytes in day_0.csv, not 10"),
                                      HasSubstr("data_loader 0")));
}

TEST_F(CoordinatorSplitsTest, ALaterGenerationGetsTheListOfTheRun) {
  ASSERT_TRUE(Fix(0, 10).ok());
  Begin("x");
  EXPECT_EQ(Fix(0, 11)->streams(0).files(0).bytes(), 10u) << "the loader refuses the changed file";
}

TEST_F(CoordinatorSplitsTest, ALoaderOfARunThatHasFinishedLearnsOfThatByItsHeartbeat) {
  StartRun();
  Finish();
  Begin("the coordinator was killed");
  EXPECT_TRUE(Fix(0, 10).ok());
}

TEST_F(CoordinatorSplitsTest, ACutOfAnotherOrderEndsTheRun) {
  ASSERT_TRUE(Fix(0, 10).ok());
  StartRun();
  MakeCut(1, /*order=*/1234);
  ASSERT_TRUE(Commit(CommitOf(1)).ok());
  Begin("x");
  const absl::Status status = Fix(0, 10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(state(), FAILED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("cut_0001_000001"), HasSubstr("orders samples")));
}

TEST_F(CoordinatorSplitsTest, ACutOfTheSameOrderGoesOn) {
  const auto list = Fix(0, 10);
  StartRun();
  MakeCut(1, OrderFingerprint(job_, *list));
  ASSERT_TRUE(Commit(CommitOf(1)).ok());
  Begin("x");
  EXPECT_TRUE(Fix(0, 10).ok());
  EXPECT_EQ(state(), STARTING);
}

}  // namespace
}  // namespace satrap
