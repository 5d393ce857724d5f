#include "embedding_worker/embedding_worker_engine.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/batch/part_placement.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/numbered_client.h"
#include "embedding_worker/testing/engine_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- waiting

TEST_F(EngineTest, APutToAFullQueueIsHeldUntilAPartIsHandedOut) {
  Start(TestJob());
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(PutTwoSamples(1)).outcome(), OUTCOME_DONE);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(PutTwoSamples(2)).outcome(), OUTCOME_DONE);
  const Reply held = PutTwoSamples(3);
  EXPECT_FALSE(held->has_value());
  EXPECT_EQ(engine_->progress().held_puts, 1u);
  EXPECT_EQ(engine_->progress().accepted_parts, 2u);
  Next(0, 1);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(held).outcome(), OUTCOME_DONE);
}

TEST_F(EngineTest, StreamsDoNotWaitForEachOther) {
  Start(TestJob());
  for (uint64_t number = 1; number <= 3; ++number) PutTwoSamples(number);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(Put(1, TwoSamples(VALID_STREAM, 0, 0))).outcome(),
            OUTCOME_DONE);
}

TEST_F(EngineTest, AHeldPutIsToldToWaitAfterFiveSecondsAndGoesOnRunning) {
  Start(TestJob());
  for (uint64_t number = 1; number <= 2; ++number) PutTwoSamples(number);
  const Reply held = PutTwoSamples(3);
  executor_.AdvanceBy(4'900'000);
  EXPECT_FALSE(held->has_value());
  executor_.AdvanceBy(200'000);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(held).outcome(), OUTCOME_WAIT);
  const Reply again = PutTwoSamples(3);
  EXPECT_FALSE(again->has_value());
  EXPECT_EQ(engine_->progress().held_puts, 1u) << "the repeat is no second part";
  Next(0, 1);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(again).outcome(), OUTCOME_DONE);
}

TEST_F(EngineTest, APartOfALaterEpochIsHeldUntilTheCurrentOneHasEnded) {
  Start(TestJob());
  PutTwoSamples(1);
  const Reply later = PutTwoSamples(2, 1);
  EXPECT_FALSE(later->has_value());
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(1, 1, 1)).result(),
            NextBatchAnswerHeader::NOT_YET);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(End(3, 0)).outcome(), OUTCOME_DONE);
  EXPECT_FALSE(later->has_value()) << "a part of epoch 0 is left";
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(0, 1, 0)).part().id().epoch(), 0u);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(later).outcome(), OUTCOME_DONE);
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(0, 2, 0)).result(), NextBatchAnswerHeader::ENDED);
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(0, 3, 1)).part().id().epoch(), 1u);
}

TEST_F(EngineTest, AnEpochNeedsTheEndMarkersOfAllLoaders) {
  JobConfig job = TestJob();
  job.mutable_data_loader()->set_replicas(2);
  Start(job);
  PutBatchHeader end;
  Send(rpc::kPutBatch, end, 0, 1);
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(0, 1)).result(), NextBatchAnswerHeader::NOT_YET);
  Send(rpc::kPutBatch, end, 1, 1);
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(0, 2)).result(), NextBatchAnswerHeader::ENDED);
}

TEST_F(EngineTest, ARequestWaitsForItsTimeThenIsToldNotYet) {
  Start(TestJob());
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(0, 1, 0, 0)).result(),
            NextBatchAnswerHeader::NOT_YET);
  const Reply waiting = Next(0, 2, 0, 50);
  executor_.AdvanceBy(49'000);
  EXPECT_FALSE(waiting->has_value());
  EXPECT_EQ(engine_->progress().waiting_requests, 1u);
  executor_.AdvanceBy(2'000);
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(waiting).result(), NextBatchAnswerHeader::NOT_YET);
  EXPECT_EQ(engine_->progress().waiting_requests, 0u);
}

TEST_F(EngineTest, AWaitingRequestGetsThePartThatArrivesAndItsTimerDoesNothing) {
  Start(TestJob());
  const Reply waiting = Next(0, 1, 0, 50);
  PutTwoSamples(1);
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(waiting).result(), NextBatchAnswerHeader::PART);
  executor_.AdvanceBy(100'000);
}

TEST_F(EngineTest, AWaitingRequestIsToldOfTheEnd) {
  Start(TestJob());
  const Reply waiting = Next(0, 1, 0, 50);
  End(1, 0);
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(waiting).result(), NextBatchAnswerHeader::ENDED);
}

// ---- once

TEST_F(EngineTest, ARepeatedNextBatchGetsTheSamePart) {
  Start(TestJob());
  PutTwoSamples(1);
  PutTwoSamples(2);
  const Reply first = Next(0, 1), again = Next(0, 1), next = Next(0, 2);
  EXPECT_EQ((**first)->header, (**again)->header);
  EXPECT_EQ((**first)->payload.data(), (**again)->payload.data());
  EXPECT_NE(HeaderOf<NextBatchAnswerHeader>(next).handle(),
            HeaderOf<NextBatchAnswerHeader>(first).handle());
  EXPECT_THAT(ps_[0]->lookups, SizeIs(2));
}

TEST_F(EngineTest, ARepeatedPutIsOnePart) {
  Start(TestJob());
  PutTwoSamples(1);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(PutTwoSamples(1)).outcome(), OUTCOME_DONE);
  EXPECT_EQ(engine_->progress().accepted_parts, 1u);
}

TEST_F(EngineTest, ARepeatedPushIsAppliedOnce) {
  Start(TestJob());
  PutTwoSamples(1);
  const auto push = PushOf(HeaderOf<NextBatchAnswerHeader>(Next(0, 1)));
  EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(Push(0, 1, push)).outcome(), OUTCOME_DONE);
  EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(Push(0, 1, push)).outcome(), OUTCOME_DONE);
  EXPECT_THAT(Updates(), SizeIs(2)) << "one for each PS";
  oldest_open_ = 2;
  Push(0, 2, push);  // closes number 1
  oldest_open_ = 1;
  EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(Push(0, 1, push)).outcome(), OUTCOME_OLD);
  EXPECT_THAT(Updates(), SizeIs(2));
  EXPECT_EQ(engine_->progress().pushes, 1u);
}

TEST_F(EngineTest, AHandleIsClosedByAckOrPushAndThenNotFound) {
  Start(TestJob());
  PutTwoSamples(1);
  PutTwoSamples(2);
  const auto first = HeaderOf<NextBatchAnswerHeader>(Next(0, 1)),
             second = HeaderOf<NextBatchAnswerHeader>(Next(0, 2));
  EXPECT_EQ(engine_->progress().outstanding_parts, 2u);
  EXPECT_EQ(HeaderOf<AckAnswerHeader>(Ack(0, 1, first.handle())).outcome(), OUTCOME_DONE);
  EXPECT_EQ(HeaderOf<AckAnswerHeader>(Ack(0, 1, first.handle())).outcome(), OUTCOME_DONE)
      << "a repeat";
  EXPECT_EQ(CodeOf(Ack(0, 2, first.handle())), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(Push(0, 1, PushOf(first))), absl::StatusCode::kNotFound);
  Push(0, 2, PushOf(second));
  EXPECT_EQ(CodeOf(Push(0, 3, PushOf(second))), absl::StatusCode::kNotFound);
  EXPECT_THAT(Updates(), SizeIs(2));
  EXPECT_EQ(engine_->progress().outstanding_parts, 0u);
}

TEST_F(EngineTest, AHandleBelongsToItsRankAndStream) {
  Start(TestJob());
  PutTwoSamples(1);
  const auto part = HeaderOf<NextBatchAnswerHeader>(Next(0, 1));
  EXPECT_EQ(CodeOf(Push(1, 1, PushOf(part))), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(Ack(0, 1, part.handle(), VALID_STREAM)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine_->progress().outstanding_parts, 1u);
}

// ---- steps that are not finite; ordered mode

TEST_F(EngineTest, AStepThatIsNotFiniteSendsNothingWhenUnordered) {
  Start(TestJob());
  PutTwoSamples(1);
  const auto part = HeaderOf<NextBatchAnswerHeader>(Next(0, 1));
  EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(Push(0, 1, PushOf(part, false))).outcome(),
            OUTCOME_DONE);
  EXPECT_THAT(Updates(), IsEmpty());
  EXPECT_EQ(engine_->progress().outstanding_parts, 0u);
}

class OrderedEngineTest : public EngineTest {
 protected:
  void StartOrdered() {
    JobConfig job = TestJob();
    job.set_mode(JobConfig::SYNC);
    job.mutable_embedding_worker()->set_queue_capacity_parts(1);
    Start(job);
  }
  // A part of `lane` for rank 1.
  PutMessage Of(uint32_t lane, uint64_t seq) {
    auto part = TwoSamples(TRAIN_STREAM, 0, seq);
    part.first.mutable_part()->mutable_id()->set_lane(lane);
    part.first.mutable_part()->mutable_id()->set_part(1);
    return part;
  }
};

TEST_F(OrderedEngineTest, ARankGetsThePartItWantsAndTheLookupCarriesTheStep) {
  StartOrdered();
  const PartId wanted = Of(1, 0).first.part().id();
  const Reply reply = NextOrdered(1, 1, wanted, 6);
  Put(1, Of(0, 0));
  EXPECT_FALSE(reply->has_value());
  Put(2, Of(1, 0));
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(reply).part().id().lane(), 1u);
  ASSERT_THAT(ps_[0]->lookups, SizeIs(1));
  EXPECT_EQ(ps_[0]->lookups[0].step(), 6u);
}

TEST_F(OrderedEngineTest, ARequestIsToldToWaitAfterFiveSecondsNeverNotYet) {
  StartOrdered();
  const PartId wanted = Of(0, 0).first.part().id();
  const Reply reply = NextOrdered(1, 1, wanted, 0);
  executor_.AdvanceBy(5'100'000);
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(reply).outcome(), OUTCOME_WAIT);
  const Reply again = NextOrdered(1, 1, wanted, 0);
  Put(1, Of(0, 0));
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(again).result(), NextBatchAnswerHeader::PART);
}

TEST_F(OrderedEngineTest, CapacityIsForEachLaneAndPart) {
  StartOrdered();
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(Put(1, Of(0, 0))).outcome(), OUTCOME_DONE);
  const Reply same_lane = Put(2, Of(0, 1));
  EXPECT_FALSE(same_lane->has_value());
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(Put(3, Of(1, 0))).outcome(), OUTCOME_DONE);
  NextOrdered(1, 1, Of(0, 0).first.part().id(), 0);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(same_lane).outcome(), OUTCOME_DONE);
}

TEST_F(OrderedEngineTest, EveryPsGetsEveryUpdate) {
  JobConfig job = TestJob();
  job.set_mode(JobConfig::SYNC);
  job.mutable_embedding_ps()->set_replicas(16);
  Start(job);
  Put(1, Of(0, 0));
  Push(1, 1,
       PushOf(HeaderOf<NextBatchAnswerHeader>(NextOrdered(1, 1, Of(0, 0).first.part().id(), 4))));
  ASSERT_THAT(Updates(), SizeIs(16));
  for (const FakePs::SeenUpdate& update : Updates()) {
    EXPECT_TRUE(update.header.ordered());
    EXPECT_EQ(update.header.part(), 1u);
  }
  EXPECT_EQ(Gradients().size(), 6u);
}

TEST_F(OrderedEngineTest, AStepThatIsNotFiniteSendsEmptyUpdates) {
  StartOrdered();
  Put(1, Of(0, 0));
  const auto part =
      HeaderOf<NextBatchAnswerHeader>(NextOrdered(1, 1, Of(0, 0).first.part().id(), 4));
  Push(1, 1, PushOf(part, false));
  ASSERT_THAT(Updates(), SizeIs(2));
  EXPECT_THAT(Gradients(), IsEmpty());
  EXPECT_FALSE(Updates()[0].header.step().finite());
}

// There are three workers. This one must refuse parts, and requests for parts, that WorkerOfPart
// gives to another worker.
TEST_F(OrderedEngineTest, APartAtAWorkerThatIsNotItsIsRefusedAndSoIsARequestForIt) {
  JobConfig job = TestJob();
  job.set_mode(JobConfig::SYNC);
  job.mutable_embedding_worker()->set_replicas(3);
  job.mutable_embedding_worker()->set_queue_capacity_parts(100);
  Start(job, /*index=*/1);
  int refused = 0;
  for (uint32_t seq = 0; seq < 12; ++seq) {
    const PutMessage part = Of(2, seq);
    const int right = WorkerOfPart(2, seq, 1, 3);
    const Reply put = Put(seq + 1, part);
    const Reply request = NextOrdered(1, seq + 1, part.first.part().id(), seq);
    if (right == 1) {
      EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(put).outcome(), OUTCOME_DONE);
      EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(request).result(), NextBatchAnswerHeader::PART);
      continue;
    }
    ++refused;
    for (const Reply& reply : {put, request}) {
      ASSERT_EQ(CodeOf(reply), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(
          std::string((*reply)->status().message()),
          HasSubstr(absl::StrCat("TRAIN_STREAM, lane 2, seq ", seq,
                                 ", part 1 belongs to embedding worker ", right, ", not to ", 1)));
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 12);
  EXPECT_EQ(engine_->progress().held_puts + engine_->progress().waiting_requests, 0u);
}

TEST_F(OrderedEngineTest, EvaluationStreamsAreUnordered) {
  StartOrdered();
  Put(1, TwoSamples(VALID_STREAM, 0, 0));
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(0, 1, 0, 0, VALID_STREAM)).result(),
            NextBatchAnswerHeader::PART);
  EXPECT_EQ(CodeOf(Next(0, 1)), absl::StatusCode::kInvalidArgument)
      << "training needs a wanted part";
}

// Passes each attempt to an engine immediately, and counts attempts and bytes of payload.
class CountingChannel final : public rpc::Channel {
 public:
  explicit CountingChannel(EmbeddingWorkerEngine* engine) : engine_(engine) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t, rpc::Callback done) override {
    ++attempts;
    payload_bytes += request.payload.size();
    engine_->Handle(method, std::move(request), std::move(done));
  }

  int attempts = 0;
  size_t payload_bytes = 0;

 private:
  EmbeddingWorkerEngine* const engine_;
};

// A loader sends parts of an evaluation during training, so they may be held until training has
// ended. Meanwhile the call is repeated, but the payload must be sent only once.
TEST_F(EngineTest, APartThatIsHeldForLongIsSentAndPlannedOnce) {
  Start(TestJob());
  CountingChannel channel(engine_.get());
  rpc::NumberedClient client({rpc::kPutBatch, envelope_, 0, rpc::RpcTimeouts()}, &executor_,
                             {{"embedding_worker 0", &channel}});
  const PutMessage part = TwoSamples(VALID_STREAM, /*epoch=*/1, 0);
  int accepted = 0;
  client.Call(0, {part.first.SerializeAsString(), part.second},
              [&](const absl::StatusOr<rpc::Message>& answer) { accepted += answer.ok(); });
  executor_.AdvanceBy(int64_t{3600} * 1000000);
  EXPECT_EQ(accepted, 0);
  EXPECT_EQ(channel.attempts, 721) << "one each 5 s";
  EXPECT_EQ(channel.payload_bytes, part.second.size());
  EXPECT_EQ(engine_->progress().parts, 1u);
  PutBatchHeader end;
  end.set_stream(VALID_STREAM);
  Send(rpc::kPutBatch, end, 0, 2);  // ends pass 0
  EXPECT_EQ(accepted, 1);
}

// ---- what breaks the contract

TEST_F(EngineTest, AnotherJobOrGenerationIsRefused) {
  Start(TestJob());
  envelope_.set_job_fingerprint(1);
  EXPECT_EQ(CodeOf(PutTwoSamples(1)), absl::StatusCode::kFailedPrecondition);
  envelope_.set_job_fingerprint(kTestFingerprint);
  envelope_.set_generation(6);
  EXPECT_EQ(CodeOf(Next(0, 1)), absl::StatusCode::kFailedPrecondition);
  envelope_.set_generation(5);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(PutTwoSamples(1)).outcome(), OUTCOME_DONE)
      << "the number is still free";
}

// Handles and numbers begin at 1 in every run. So a rank of an earlier run uses handles that exist,
// but its calls must be refused.
TEST_F(EngineTest, AnAckOrAPushOfAnEarlierRunReleasesNothing) {
  Start(TestJob());
  PutTwoSamples(1);
  const auto part = HeaderOf<NextBatchAnswerHeader>(Next(0, 1));
  EXPECT_EQ(part.handle(), 1u);
  envelope_.set_run_id(kTestRunId + 1);
  EXPECT_EQ(CodeOf(Ack(0, 1, part.handle())), absl::StatusCode::kFailedPrecondition);
  PushGradientsHeader push;
  push.set_handle(part.handle());
  push.mutable_call()->set_number(1);
  push.mutable_call()->set_oldest_open(1);
  *push.mutable_envelope() = envelope_;
  EXPECT_EQ(CodeOf(SendBytes(rpc::kPushGradients, {push.SerializeAsString(), Buffer()})),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(engine_->progress().outstanding_parts, 1u);
  envelope_.set_run_id(kTestRunId);
  EXPECT_EQ(HeaderOf<AckAnswerHeader>(Ack(0, 1, part.handle())).outcome(), OUTCOME_DONE)
      << "the number is still free";
  EXPECT_EQ(engine_->progress().outstanding_parts, 0u);
}

TEST_F(EngineTest, AMalformedPartIsRefusedByNameAndNotQueued) {
  Start(TestJob());
  auto part = TwoSamples(TRAIN_STREAM, 0, 0);
  part.first.mutable_features(3)->mutable_ids()->set_offset_bytes(1 << 20);
  const Reply outside = Put(1, part);
  EXPECT_EQ(CodeOf(outside), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT((*outside)->status().message(), HasSubstr("features[3].ids"));
  part = TwoSamples(TRAIN_STREAM, 0, 0);
  part.first.mutable_part()->set_samples(3);
  EXPECT_EQ(CodeOf(Put(2, part)), absl::StatusCode::kInvalidArgument);
  part = TwoSamples(TRAIN_STREAM, 0, 0);
  part.first.mutable_features()->RemoveLast();
  EXPECT_EQ(CodeOf(Put(3, part)), absl::StatusCode::kInvalidArgument);
  part = TwoSamples(TRAIN_STREAM, 0, 0);
  part.first.mutable_part()->mutable_id()->set_part(2);
  EXPECT_EQ(CodeOf(Put(4, part)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Put(4, part)), absl::StatusCode::kInvalidArgument) << "an error is an answer";
  EXPECT_EQ(engine_->progress().accepted_parts, 0u);
}

TEST_F(EngineTest, AMalformedPushAppliesNothingAndLeavesThePartOutstanding) {
  const auto damage = [](int kind, PushGradientsHeader* push) {
    switch (kind) {
      case 0:
        return push->mutable_tables(0)->set_num_rows(3);
      case 1:
        return push->mutable_tables(0)->mutable_gradients()->set_size_bytes(8);
      case 2:
        return push->mutable_features()->RemoveLast();
      case 3:
        return push->mutable_features(0)->set_feature(0);
      case 4:
        return push->mutable_tables()->RemoveLast();
      case 5:
        return push->mutable_tables(1)->set_table(3);
      case 6:
        return push->mutable_step()->clear_normalizer();
      case 7:
        return push->mutable_tables(0)->mutable_gradients()->set_offset_bytes(1 << 20);
    }
  };
  Start(TestJob());
  PutTwoSamples(1);
  const auto part = HeaderOf<NextBatchAnswerHeader>(Next(0, 1));
  for (int kind = 0; kind < 8; ++kind) {
    auto push = PushOf(part);
    damage(kind, &push.first);
    EXPECT_EQ(CodeOf(Push(0, kind + 1, push)), absl::StatusCode::kInvalidArgument) << kind;
    EXPECT_EQ(engine_->progress().outstanding_parts, 1u) << kind;
  }
  EXPECT_THAT(Updates(), IsEmpty());
  EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(Push(0, 9, PushOf(part))).outcome(), OUTCOME_DONE);
  EXPECT_EQ(engine_->progress().outstanding_parts, 0u);
}

TEST_F(EngineTest, UnknownSendersAndMethodsAreRefused) {
  Start(TestJob());
  EXPECT_EQ(CodeOf(Next(2, 1)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Send(rpc::kUpdate, UpdateHeader(), 0, 1)), absl::StatusCode::kUnimplemented);
  const Reply reply = SendBytes(rpc::kAck, {"\x01garbage", Buffer()});
  EXPECT_EQ(CodeOf(reply), absl::StatusCode::kInvalidArgument);
}

// ---- PSs that fail

TEST_F(EngineTest, APsThatRefusesEndsTheJob) {
  Start(TestJob());
  PutTwoSamples(1);
  ps_[1]->error = absl::FailedPreconditionError("step 3 is not applied");
  const Reply reply = Next(0, 1);
  EXPECT_EQ(CodeOf(reply), absl::StatusCode::kFailedPrecondition);
  ASSERT_THAT(failures_, SizeIs(1));
  EXPECT_THAT(failures_[0].message(), HasSubstr("embedding_ps 1"));
}

TEST_F(EngineTest, APsThatIsAwayIsRetriedUntilItIsBack) {
  Start(TestJob());
  PutTwoSamples(1);
  ps_[0]->error = absl::UnavailableError("away");
  const Reply reply = Next(0, 1);
  executor_.AdvanceBy(3'000'000);
  EXPECT_FALSE(reply->has_value());
  ps_[0]->error = absl::OkStatus();
  executor_.AdvanceBy(5'000'000);
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(0, 1)).result(), NextBatchAnswerHeader::PART);
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(EngineTest, AFailedUpdateEndsTheJob) {
  Start(TestJob());
  PutTwoSamples(1);
  const auto push = PushOf(HeaderOf<NextBatchAnswerHeader>(Next(0, 1)));
  ps_[0]->error = absl::InvalidArgumentError("no");
  EXPECT_EQ(CodeOf(Push(0, 1, push)), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(failures_, SizeIs(1));
  EXPECT_EQ(engine_->progress().pushes, 0u);
}

TEST_F(EngineTest, AnAnswerThatDoesNotFitItsLookupEndsTheJob) {
  Start(TestJob());
  PutTwoSamples(1);
  ps_[0]->answer_one_row_less = true;
  EXPECT_EQ(CodeOf(Next(0, 1)), absl::StatusCode::kInternal);
  EXPECT_THAT(failures_, SizeIs(1));
}

TEST(EmbeddingWorkerEngine, NeedsAChannelForEachPs) {
  ManualExecutor executor;
  EmbeddingWorkerEngine::Options options;
  options.executor = &executor;
  EXPECT_EQ(EmbeddingWorkerEngine::Create(TestJob(), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace satrap
