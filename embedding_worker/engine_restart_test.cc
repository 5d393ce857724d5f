// Tests of an engine that continues from a cut, and of properties of the engine on which the ledger
// and recovery rely.

#include <string>
#include <vector>

#include "common/role/kill_points.h"
#include "embedding_worker/testing/engine_fixture.h"

namespace satrap {
namespace {

class EngineRestartTest : public EngineTest {
 protected:
  // A part without samples, whose provenance says that a split has ended.
  static PutMessage EndOfSplit(uint64_t seq) {
    PutMessage part = MakePart(TRAIN_STREAM, 0, seq, 0, {{}, {}, {}, {}}, {{}, {0}, {}, {}});
    ProvenanceRange* end = part.first.mutable_part()->add_provenance();
    end->set_split(7);
    end->set_block(2);
    end->set_ends_split(true);
    end->set_split_rows(12);
    end->set_bad_records(3);
    return part;
  }
  void StartAt(uint32_t epoch, JobConfig::Mode mode) {
    position_.set_epoch(epoch);
    JobConfig job = TestJob();
    job.set_mode(mode);
    Start(job);
  }
  // Arms a kill point that only counts how often it is reached.
  void ArmKillPoint(KillPoint::Point point) {
    JobConfig job;
    job.add_kill_points()->set_point(point);
    armed_ = std::make_unique<KillPoints>(job, 0, 1, [this] {
      ++kills_;
      updates_at_kill_ = Updates().size();
      pushes_at_kill_ = engine_->progress().pushes;
    });
    kill_points_ = armed_.get();
  }

  std::unique_ptr<KillPoints> armed_;
  int kills_ = 0;
  size_t updates_at_kill_ = 0;
  uint64_t pushes_at_kill_ = 0;
};

TEST_F(EngineRestartTest, ProvenanceReachesTheRankAsTheLoaderWroteIt) {
  Start(TestJob());
  PutMessage part = TwoSamples(TRAIN_STREAM, 0, 1);
  ProvenanceRange* range = part.first.mutable_part()->add_provenance();
  range->set_split(3);
  range->set_block(4);
  range->set_from(0);
  range->set_to(2);
  range->set_block_rows(5);
  range->set_bad_records(6);
  range->set_empty_lines(7);
  Put(1, part);
  Put(2, EndOfSplit(2));
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(0, 1)).part().SerializeAsString(),
            part.first.part().SerializeAsString());
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(0, 2)).part().SerializeAsString(),
            EndOfSplit(2).first.part().SerializeAsString());
}

TEST_F(EngineRestartTest, APartOfNoSamplesIsHandedOutAndAckedOrPushed) {
  Start(TestJob());
  Put(1, EndOfSplit(1));
  Put(2, EndOfSplit(2));
  const auto acked = HeaderOf<NextBatchAnswerHeader>(Next(0, 1));
  const auto pushed = HeaderOf<NextBatchAnswerHeader>(Next(0, 2));
  EXPECT_EQ(acked.result(), NextBatchAnswerHeader::PART);
  EXPECT_EQ(acked.part().samples(), 0u);
  EXPECT_EQ(HeaderOf<AckAnswerHeader>(Ack(0, 1, acked.handle())).outcome(), OUTCOME_DONE);
  EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(Push(0, 1, PushOf(pushed))).outcome(),
            OUTCOME_DONE);
  EXPECT_TRUE(Updates().empty());
  EXPECT_EQ(engine_->progress().outstanding_parts, 0u);
  EXPECT_TRUE(failures_.empty());
}

TEST_F(EngineRestartTest, TheTrainStreamBeginsAtItsEpochAndTheOthersAtPass0) {
  StartAt(2, JobConfig::HYBRID);
  EXPECT_EQ(CodeOf(PutTwoSamples(1, 1)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(PutTwoSamples(2, 2)).outcome(), OUTCOME_DONE);
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(Next(0, 1, 2)).part().id().epoch(), 2u);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(Put(1, TwoSamples(VALID_STREAM, 0, 0))).outcome(),
            OUTCOME_DONE);
}

TEST_F(EngineRestartTest, OrderedTheLanesBeginAtTheirSeqs) {
  position_.add_lanes()->set_next_seq(3);
  position_.add_lanes()->set_left(true);
  StartAt(1, JobConfig::SYNC);
  const auto of = [](uint32_t lane, uint64_t seq) {
    PutMessage part = TwoSamples(TRAIN_STREAM, 1, seq);
    part.first.mutable_part()->mutable_id()->set_lane(lane);
    return part;
  };
  EXPECT_EQ(CodeOf(Put(1, of(0, 2))), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Put(2, of(1, 0))), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(HeaderOf<PutBatchAnswerHeader>(Put(3, of(0, 3))).outcome(), OUTCOME_DONE);
  EXPECT_EQ(CodeOf(NextOrdered(0, 1, of(0, 2).first.part().id(), 9)),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(HeaderOf<NextBatchAnswerHeader>(NextOrdered(0, 2, of(0, 3).first.part().id(), 9))
                .part()
                .id()
                .seq(),
            3u);
}

TEST_F(EngineRestartTest, DiesBeforeAnUpdateIfTheJobSaysSo) {
  ArmKillPoint(KillPoint::WORKER_BEFORE_UPDATE);
  Start(TestJob());
  PutTwoSamples(1);
  Push(0, 1, PushOf(HeaderOf<NextBatchAnswerHeader>(Next(0, 1))));
  EXPECT_EQ(kills_, 1);
  EXPECT_EQ(updates_at_kill_, 0u);
}

TEST_F(EngineRestartTest, DiesAfterAnUpdateAndBeforeItsAnswerIfTheJobSaysSo) {
  ArmKillPoint(KillPoint::WORKER_AFTER_UPDATE);
  Start(TestJob());
  PutTwoSamples(1);
  const auto part = HeaderOf<NextBatchAnswerHeader>(Next(0, 1));
  EXPECT_EQ(kills_, 0);
  Push(0, 1, PushOf(part));
  EXPECT_EQ(kills_, 1);
  EXPECT_EQ(updates_at_kill_, 2u) << "at both PSs";
  EXPECT_EQ(pushes_at_kill_, 1u);
}

}  // namespace
}  // namespace satrap
