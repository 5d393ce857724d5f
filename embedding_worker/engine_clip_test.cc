// Tests pushes of a job with gradient_clip_norm.

#include <string>

#include "common/rpc/hot_methods.h"
#include "embedding_worker/testing/engine_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class ClippedPushTest : public EngineTest {
 protected:
  void SetUp() override {
    JobConfig job = TestJob();
    job.set_mode(JobConfig::SYNC);
    job.set_gradient_clip_norm(2.5f);
    Start(job);
    ps_[0]->squares = 9;
    ps_[1]->squares = 12;
  }
  // A push of step 4, in which the squares of the dense gradients have the sum 4.
  PushMessage NewPush(bool finite = true) {
    Put(1, TwoSamples(TRAIN_STREAM, 0, 0));
    const auto part = HeaderOf<NextBatchAnswerHeader>(
        NextOrdered(0, 1, TwoSamples(TRAIN_STREAM, 0, 0).first.part().id(), 4));
    PushMessage push = PushOf(part, finite);
    if (finite) push.first.mutable_step()->set_dense_squares(4);
    return push;
  }
};

// Reaches the kill point between the two halves of a push, and only counts the kills.
class ClippedPushKillTest : public ClippedPushTest {
 protected:
  ClippedPushKillTest() { kill_points_ = &points_; }
  static JobConfig ToKill() {
    JobConfig job;
    job.add_kill_points()->set_point(KillPoint::WORKER_BETWEEN_HALVES);
    return job;
  }

  int kills_ = 0;
  KillPoints points_{ToKill(), 0, 1, [this] {
                       ++kills_;
                       EXPECT_EQ(ps_[0]->updates.size(), 1u);
                       EXPECT_TRUE(ps_[0]->apply_steps.empty());
                     }};
};

TEST_F(ClippedPushKillTest, DiesWithAllSquaresAndBeforeAnyPsHasTheFactor) {
  Push(0, 7, NewPush());
  EXPECT_EQ(kills_, 1);
}

TEST_F(ClippedPushTest, HasEveryPsApplyTheStepWithTheFactorOfAllSquares) {
  const Reply reply = Push(0, 7, NewPush());
  EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(reply).squares(), 25);
  for (const auto& ps : ps_) {
    ASSERT_EQ(ps->apply_steps.size(), 1u);
    const ApplyStepHeader& apply = ps->apply_steps[0];
    EXPECT_EQ(apply.step(), 4u);
    EXPECT_EQ(apply.clip_factor(), 0.5f);
    EXPECT_EQ(apply.call().sender(), 0u);
    EXPECT_EQ(apply.call().number(), 7u);
    EXPECT_EQ(apply.envelope().run_id(), kTestRunId);
  }
  EXPECT_EQ(engine_->progress().pushes, 1u);
}

TEST_F(ClippedPushTest, IsAnsweredOnceThoughItIsRepeated) {
  const PushMessage push = NewPush();
  Push(0, 7, push);
  EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(Push(0, 7, push)).squares(), 25);
  EXPECT_EQ(ps_[0]->updates.size(), 1u);
  EXPECT_EQ(ps_[0]->apply_steps.size(), 1u);
}

TEST_F(ClippedPushTest, OfAStepThatIsNotFiniteHasOneHalf) {
  const Reply reply = Push(0, 7, NewPush(/*finite=*/false));
  EXPECT_FALSE(HeaderOf<PushGradientsAnswerHeader>(reply).has_squares());
  EXPECT_EQ(ps_[0]->updates.size(), 1u);
  EXPECT_TRUE(ps_[0]->apply_steps.empty());
}

TEST_F(ClippedPushTest, WaitsForAPsThatIsAwayBetweenTheHalves) {
  const PushMessage push = NewPush();
  ps_[1]->apply_error = absl::UnavailableError("away");
  const Reply reply = Push(0, 7, push);
  EXPECT_FALSE(reply->has_value());
  EXPECT_EQ(ps_[0]->apply_steps.size(), 1u);
  ps_[1]->apply_error = absl::OkStatus();
  executor_.AdvanceBy(2'000'000);
  EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(reply).squares(), 25);
  EXPECT_EQ(ps_[1]->apply_steps.size(), 1u);
  EXPECT_TRUE(failures_.empty());
}

TEST_F(ClippedPushTest, APsThatRefusesAHalfEndsTheJob) {
  const PushMessage push = NewPush();
  ps_[1]->apply_error = absl::InvalidArgumentError("no");
  EXPECT_EQ(CodeOf(Push(0, 7, push)), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_NE(std::string(failures_[0].message()).find("ApplyStep to embedding_ps 1"),
            std::string::npos)
      << failures_[0];
}

TEST_F(ClippedPushTest, APsThatAnswersNoSquaresEndsTheJob) {
  const PushMessage push = NewPush();
  ps_[1]->squares = -1;
  EXPECT_EQ(CodeOf(Push(0, 7, push)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(failures_.size(), 1u);
  EXPECT_TRUE(ps_[0]->apply_steps.empty());
}

TEST_F(ClippedPushTest, WithNegativeDenseSquaresIsRefused) {
  PushMessage push = NewPush();
  push.first.mutable_step()->set_dense_squares(-1);
  EXPECT_EQ(CodeOf(Push(0, 7, push)), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(ps_[0]->updates.empty());
  EXPECT_TRUE(failures_.empty());
}

}  // namespace
}  // namespace satrap
