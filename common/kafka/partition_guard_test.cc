#include "common/kafka/partition_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/kafka/testing/mock_brokers.h"
#include "common/numeric/hash.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"

namespace satrap {
namespace {

using testing::HasSubstr;

const KafkaPartition kPartition = {"clicks", 3};
constexpr MessageMark kAnchor = {70, 0x1234};

TEST(PartitionGuardTest, AnotherMessageAtTheAnchorsOffsetIsAnotherTopic) {
  PartitionLook look;
  look.first = MessageMark{70, 0x1235};
  const absl::Status status = CompareAnchor(kPartition, kAnchor, look);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("clicks/3, offset 70: the message is not"));
}

TEST(PartitionGuardTest, APartitionThatEndsBeforeTheAnchorIsAnotherTopic) {
  PartitionLook look;
  look.latest = 70;
  EXPECT_FALSE(CompareAnchor(kPartition, kAnchor, look).ok()) << "there is no message 70 yet";
  look.latest = 71;
  EXPECT_TRUE(CompareAnchor(kPartition, kAnchor, look).ok()) << "it may have been compacted";
}

TEST(PartitionGuardTest, TheSameMessageOrNoneAnyMoreIsNoChange) {
  PartitionLook look;
  EXPECT_TRUE(CompareAnchor(kPartition, kAnchor, look).ok()) << "nothing was found";
  look.first = kAnchor;
  EXPECT_TRUE(CompareAnchor(kPartition, kAnchor, look).ok());
  look.first = MessageMark{71, 0x1235};
  EXPECT_TRUE(CompareAnchor(kPartition, kAnchor, look).ok()) << "it has expired or was compacted";
}

// A guard that begins with the anchors of an earlier reader. It guards two partitions of ten
// messages each, "0" to "9", led by brokers 0 and 1.
class EarlyAnchorTest : public testing::Test {
 protected:
  EarlyAnchorTest() {
    brokers_.MakeTopic("clicks", 2);
    std::vector<std::string> values;
    for (int i = 0; i < 10; ++i) values.push_back(absl::StrCat(i));
    for (const int partition : {0, 1}) brokers_.Produce({"clicks", partition}, values);
  }
  static KafkaPlace PlaceWith(int partition, const MessageMark& anchor) {
    KafkaPlace place{{"clicks", partition}, 10};
    place.anchor = PartitionAnchor{anchor, -1};
    return place;
  }
  void Begin(const std::vector<KafkaPlace>& places, double broker_wait_seconds = 600) {
    KafkaConfig config = brokers_.Config();
    config.set_broker_wait_seconds(broker_wait_seconds);
    guard_ = std::make_unique<PartitionGuard>(
        config, places, Logger(),
        [this] {
          MutexLock lock(&mutex_);
          woken_.NotifyAll();
        },
        [this](const auto& anchors) {
          MutexLock lock(&mutex_);
          for (const auto& [partition, anchor] : anchors) kept_.push_back(partition.partition);
          woken_.NotifyAll();
        });
  }
  void AwaitLookAt(size_t index) {
    const int64_t deadline_ms = MonotonicMs() + 60000;
    MutexLock lock(&mutex_);
    while (guard_->awaits_look(index)) {
      CHECK(MonotonicMs() < deadline_ms) << "partition " << index << " is not compared";
      woken_.WaitFor(&mutex_, 1000);
    }
  }
  // Waits for the end of a look that has found at least one partition unchanged.
  void AwaitEndOfLook() {
    const int64_t deadline_ms = MonotonicMs() + 60000;
    MutexLock lock(&mutex_);
    while (kept_.empty()) {
      CHECK(MonotonicMs() < deadline_ms) << "no anchor is kept";
      woken_.WaitFor(&mutex_, 1000);
    }
  }
  std::vector<int> Kept() {
    MutexLock lock(&mutex_);
    return kept_;
  }

  const MessageMark same_{9, Xxh64("9")};
  const MessageMark other_{9, Xxh64("8")};
  const MessageMark beyond_{30, 0x1234};
  MockBrokers brokers_{2};
  Mutex mutex_;
  CondVar woken_;
  std::vector<int> kept_ GUARDED_BY(mutex_);
  std::unique_ptr<PartitionGuard> guard_;
};

TEST_F(EarlyAnchorTest, EachPartitionIsComparedWhenItsOwnBrokerAnswers) {
  brokers_.TakeDown(1);
  Begin({PlaceWith(0, same_), PlaceWith(1, other_)});
  AwaitLookAt(0);
  EXPECT_TRUE(guard_->status(0).ok()) << guard_->status(0);
  AwaitEndOfLook();
  EXPECT_TRUE(guard_->awaits_look(1)) << "its broker has not said whether the message is the same";
  brokers_.BringUp(1);
  AwaitLookAt(1);
  EXPECT_EQ(guard_->status(1).code(), absl::StatusCode::kFailedPrecondition) << guard_->status(1);
  guard_.reset();
  for (const int partition : Kept()) EXPECT_EQ(partition, 0) << "the other one is not the same";
}

TEST_F(EarlyAnchorTest, AShorterPartitionIsAnotherThoughItsEndIsRefusedAtFirst) {
  brokers_.RefuseOffsets(3);
  Begin({PlaceWith(0, beyond_), PlaceWith(1, same_)});
  AwaitLookAt(1);
  EXPECT_TRUE(guard_->status(1).ok()) << guard_->status(1);
  AwaitLookAt(0);
  EXPECT_EQ(guard_->status(0).code(), absl::StatusCode::kFailedPrecondition) << guard_->status(0);
}

TEST_F(EarlyAnchorTest, APartitionThatHadNothingNeedsNoLookIfItIsReadFromItsBeginning) {
  KafkaPlace place{{"clicks", 0}, 0};
  place.anchor = PartitionAnchor();
  Begin({place});
  EXPECT_FALSE(guard_->awaits_look(0));
}

TEST_F(EarlyAnchorTest, ALookIsNotAwaitedForEver) {
  brokers_.TakeDown(1);
  Begin({PlaceWith(0, same_), PlaceWith(1, same_)}, /*broker_wait_seconds=*/0.001);
  AwaitLookAt(1);
  EXPECT_EQ(guard_->status(1).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(guard_->status(1).message()), HasSubstr("message of clicks/1 "));
}

}  // namespace
}  // namespace satrap
