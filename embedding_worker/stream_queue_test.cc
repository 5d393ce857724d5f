#include "embedding_worker/stream_queue.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Has short functions to put, end and request. The queue's decisions are kept as text, such as
// "accept 3" (the call's number), "deliver 7: 0/1/4/0" (epoch, lane, seq, part), "end 8" and
// "refuse 9".
class QueueTest : public testing::Test {
 protected:
  void Start(bool ordered, int queue_capacity_parts, int num_loaders) {
    StreamQueue::Options options;
    options.ordered = ordered;
    options.capacity_scope =
        ordered ? StreamQueue::CapacityScope::kLanePart : StreamQueue::CapacityScope::kStream;
    options.queue_capacity_parts = queue_capacity_parts;
    options.num_loaders = num_loaders;
    options.first_epoch = first_epoch_;
    options.first_seqs = first_seqs_;
    queue_ = std::make_unique<StreamQueue>(options);
  }

  static PartId Id(uint32_t epoch, uint32_t lane, uint64_t seq, uint32_t part = 0) {
    PartId id;
    id.set_epoch(epoch);
    id.set_lane(lane);
    id.set_seq(seq);
    id.set_part(part);
    return id;
  }

  absl::Status Put(uint64_t call, const PartId& id, uint32_t loader = 0) {
    auto part = std::make_shared<PlannedPart>();
    *part->description.mutable_id() = id;
    StreamQueue::Decisions decisions;
    const absl::Status status = queue_->Put({nullptr, call, loader}, part, &decisions);
    Note(decisions);
    return status;
  }

  absl::Status End(uint32_t loader, uint32_t epoch) {
    StreamQueue::Decisions decisions;
    const absl::Status status = queue_->End(loader, epoch, &decisions);
    Note(decisions);
    return status;
  }

  bool RequestPart(uint64_t call, uint32_t epoch) {
    StreamQueue::Decisions decisions;
    const bool waits =
        queue_->RequestPart({{nullptr, call, 0}, epoch, absl::nullopt, absl::nullopt}, &decisions);
    Note(decisions);
    return waits;
  }

  bool RequestNamed(uint64_t call, const PartId& id) {
    StreamQueue::Decisions decisions;
    const bool waits = queue_->RequestPart({{nullptr, call, 0}, id.epoch(), id, 0}, &decisions);
    Note(decisions);
    return waits;
  }

  std::vector<std::string> Decided() { return std::move(decided_); }

  uint32_t first_epoch_ = 0;
  std::vector<uint64_t> first_seqs_;
  std::unique_ptr<StreamQueue> queue_;

 private:
  void Note(const StreamQueue::Decisions& decisions) {
    for (const auto& call : decisions.accepted)
      decided_.push_back(absl::StrCat("accept ", call.number));
    for (const auto& delivery : decisions.deliveries) {
      const PartId& id = delivery.part->description.id();
      decided_.push_back(absl::StrCat("deliver ", delivery.request.call.number, ": ", id.epoch(),
                                      "/", id.lane(), "/", id.seq(), "/", id.part()));
    }
    for (const auto& request : decisions.ended)
      decided_.push_back(absl::StrCat("end ", request.call.number));
    for (const auto& request : decisions.refused)
      decided_.push_back(absl::StrCat("refuse ", request.call.number));
  }

  std::vector<std::string> decided_;
};

TEST_F(QueueTest, AnUnorderedStreamHasOneCapacity) {
  Start(false, 2, 1);
  for (uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(Put(i, Id(0, i, 0)).ok());
  EXPECT_THAT(Decided(), ElementsAre("accept 1", "accept 2"));
  EXPECT_EQ(queue_->num_held(), 2u);
  RequestPart(9, 0);
  EXPECT_THAT(Decided(), ElementsAre("accept 3", "deliver 9: 0/1/0/0"));
}

TEST_F(QueueTest, AnOrderedStreamHasACapacityForEachLaneAndPart) {
  Start(true, 1, 1);
  ASSERT_TRUE(Put(1, Id(0, 0, 0, 0)).ok());
  ASSERT_TRUE(Put(2, Id(0, 0, 1, 0)).ok());
  ASSERT_TRUE(Put(3, Id(0, 0, 0, 1)).ok());
  ASSERT_TRUE(Put(4, Id(0, 1, 0, 0)).ok());
  EXPECT_THAT(Decided(), ElementsAre("accept 1", "accept 3", "accept 4"));
  RequestNamed(9, Id(0, 0, 0, 0));
  EXPECT_THAT(Decided(), ElementsAre("accept 2", "deliver 9: 0/0/0/0"));
}

TEST_F(QueueTest, AWaitingRequestGetsThePartThatArrives) {
  Start(false, 1, 1);
  EXPECT_TRUE(RequestPart(8, 0));
  EXPECT_TRUE(RequestPart(9, 0));
  ASSERT_TRUE(Put(1, Id(0, 0, 0)).ok());
  EXPECT_THAT(Decided(), ElementsAre("accept 1", "deliver 8: 0/0/0/0"));
  EXPECT_EQ(queue_->num_waiting(), 1u);
}

TEST_F(QueueTest, AWithdrawnRequestGetsNothing) {
  Start(false, 1, 1);
  RequestPart(8, 0);
  EXPECT_TRUE(queue_->Withdraw({nullptr, 8, 0}));
  EXPECT_FALSE(queue_->Withdraw({nullptr, 8, 0}));
  ASSERT_TRUE(Put(1, Id(0, 0, 0)).ok());
  EXPECT_THAT(Decided(), ElementsAre("accept 1"));
}

TEST_F(QueueTest, AnOrderedRequestGetsOnlyItsPart) {
  Start(true, 4, 1);
  EXPECT_TRUE(RequestNamed(8, Id(0, 1, 0)));
  ASSERT_TRUE(Put(1, Id(0, 0, 0)).ok());
  EXPECT_THAT(Decided(), ElementsAre("accept 1"));
  ASSERT_TRUE(Put(2, Id(0, 1, 0)).ok());
  EXPECT_THAT(Decided(), ElementsAre("accept 2", "deliver 8: 0/1/0/0"));
}

TEST_F(QueueTest, AnOrderedRequestForAPartThatWasHandedOutIsRefused) {
  Start(true, 4, 1);
  ASSERT_TRUE(Put(1, Id(0, 0, 0)).ok());
  EXPECT_FALSE(RequestNamed(7, Id(0, 0, 0)));
  EXPECT_FALSE(RequestNamed(8, Id(0, 0, 0)));
  EXPECT_THAT(Decided(), ElementsAre("accept 1", "deliver 7: 0/0/0/0", "refuse 8"));
  EXPECT_FALSE(Put(2, Id(0, 0, 0)).ok()) << "it cannot come again either";
}

TEST_F(QueueTest, AnOrderedRequestForAPartThatWasPassedOverIsRefused) {
  Start(true, 4, 1);
  EXPECT_TRUE(RequestNamed(7, Id(0, 0, 3)));
  EXPECT_TRUE(RequestNamed(8, Id(0, 0, 3, 1)));
  ASSERT_TRUE(Put(1, Id(0, 0, 5)).ok());
  EXPECT_THAT(Decided(), ElementsAre("accept 1", "refuse 7"));
  EXPECT_EQ(queue_->num_waiting(), 1u) << "the other part of the batch can still come";
}

TEST_F(QueueTest, AnOrderedRequestForAPartThatNoLoaderSentIsRefusedOnceAllHaveEnded) {
  Start(true, 4, 2);
  ASSERT_TRUE(Put(1, Id(0, 0, 0)).ok());
  EXPECT_TRUE(RequestNamed(7, Id(0, 0, 1)));
  ASSERT_TRUE(End(0, 0).ok());
  EXPECT_THAT(Decided(), ElementsAre("accept 1"));
  ASSERT_TRUE(End(1, 0).ok());
  EXPECT_THAT(Decided(), ElementsAre("refuse 7"));
  EXPECT_FALSE(RequestNamed(8, Id(0, 0, 2)));
  EXPECT_FALSE(RequestNamed(9, Id(0, 0, 0)));
  EXPECT_THAT(Decided(), ElementsAre("refuse 8", "deliver 9: 0/0/0/0"));
  EXPECT_FALSE(RequestNamed(10, Id(0, 0, 0))) << "of an epoch that is over";
  EXPECT_THAT(Decided(), ElementsAre("refuse 10"));
}

TEST_F(QueueTest, AnEpochEndsWhenAllLoadersHaveEndedItAndItsPartsAreGone) {
  Start(false, 4, 2);
  ASSERT_TRUE(Put(1, Id(0, 0, 0), 0).ok());
  ASSERT_TRUE(End(0, 0).ok());
  ASSERT_TRUE(End(1, 0).ok());
  EXPECT_EQ(queue_->epoch(), 0u);
  RequestPart(7, 0);
  EXPECT_EQ(queue_->epoch(), 1u);
  RequestPart(8, 0);
  EXPECT_THAT(Decided(), ElementsAre("accept 1", "deliver 7: 0/0/0/0", "end 8"));
}

TEST_F(QueueTest, AWaitingRequestIsToldOfTheEnd) {
  Start(false, 4, 2);
  ASSERT_TRUE(End(0, 0).ok());
  RequestPart(7, 0);
  RequestPart(8, 1);
  EXPECT_THAT(Decided(), IsEmpty());
  ASSERT_TRUE(End(1, 0).ok());
  EXPECT_THAT(Decided(), ElementsAre("end 7"));
  EXPECT_EQ(queue_->num_waiting(), 1u);
}

TEST_F(QueueTest, PartsOfALaterEpochTakeNoCapacity) {
  Start(false, 1, 2);
  ASSERT_TRUE(End(0, 0).ok());
  ASSERT_TRUE(Put(1, Id(1, 0, 0), 0).ok());
  ASSERT_TRUE(Put(2, Id(0, 1, 0), 1).ok());
  EXPECT_THAT(Decided(), ElementsAre("accept 2"));
  RequestPart(7, 1);  // for the later epoch: nothing yet
  RequestPart(8, 0);
  EXPECT_THAT(Decided(), ElementsAre("deliver 8: 0/1/0/0"));
  ASSERT_TRUE(End(1, 0).ok());
  EXPECT_THAT(Decided(), ElementsAre("accept 1", "deliver 7: 1/0/0/0"));
}

TEST_F(QueueTest, EndMarkersOfLaterEpochsAreNotedAtOnce) {
  Start(false, 1, 2);
  ASSERT_TRUE(End(0, 0).ok());
  ASSERT_TRUE(End(0, 1).ok());
  ASSERT_TRUE(End(1, 0).ok());
  ASSERT_TRUE(End(1, 1).ok());
  EXPECT_EQ(queue_->epoch(), 2u);
}

TEST_F(QueueTest, RefusesWhatNoLoaderMaySend) {
  Start(true, 4, 2);
  ASSERT_TRUE(Put(1, Id(0, 0, 0), 0).ok());
  EXPECT_FALSE(Put(2, Id(0, 0, 0), 0).ok()) << "twice";
  ASSERT_TRUE(End(0, 0).ok());
  EXPECT_FALSE(End(0, 0).ok()) << "twice";
  EXPECT_FALSE(Put(3, Id(0, 0, 1), 0).ok()) << "after the end marker";
  ASSERT_TRUE(End(1, 0).ok());
  RequestNamed(9, Id(0, 0, 0));
  EXPECT_EQ(queue_->epoch(), 1u);
  EXPECT_FALSE(Put(4, Id(0, 1, 0), 1).ok()) << "after the epoch";
  EXPECT_FALSE(End(1, 0).ok()) << "after the epoch";
  EXPECT_THAT(Decided(), ElementsAre("accept 1", "deliver 9: 0/0/0/0"));
}

TEST_F(QueueTest, AStreamThatGoesOnBeginsAtItsEpochAndSeqs) {
  first_epoch_ = 3;
  first_seqs_ = {2, StreamQueue::kNone};
  Start(true, 4, 1);
  EXPECT_EQ(queue_->epoch(), 3u);
  EXPECT_FALSE(Put(1, Id(2, 0, 9)).ok()) << "an epoch before";
  EXPECT_FALSE(End(0, 2).ok());
  EXPECT_FALSE(Put(2, Id(3, 0, 1)).ok()) << "trained before";
  EXPECT_FALSE(Put(3, Id(3, 1, 5)).ok()) << "a lane that has left";
  ASSERT_TRUE(Put(4, Id(3, 0, 2, 0)).ok());
  ASSERT_TRUE(Put(5, Id(3, 0, 2, 1)).ok());
  ASSERT_TRUE(Put(6, Id(3, 2, 0)).ok()) << "a lane that is not named";
  EXPECT_FALSE(RequestNamed(7, Id(3, 0, 1)));
  EXPECT_FALSE(RequestNamed(8, Id(3, 1, 0)));
  EXPECT_TRUE(RequestNamed(9, Id(3, 0, 3)));
  EXPECT_THAT(Decided(), ElementsAre("accept 4", "accept 5", "accept 6", "refuse 7", "refuse 8"));
}

TEST_F(QueueTest, TheSeqsCountInTheFirstEpochOnly) {
  first_seqs_ = {2, StreamQueue::kNone};
  Start(true, 4, 1);
  ASSERT_TRUE(End(0, 0).ok());
  ASSERT_TRUE(Put(1, Id(1, 0, 0)).ok());
  ASSERT_TRUE(Put(2, Id(1, 1, 0)).ok());
  EXPECT_THAT(Decided(), ElementsAre("accept 1", "accept 2"));
}

}  // namespace
}  // namespace satrap
