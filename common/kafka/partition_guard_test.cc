#include "common/kafka/partition_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace satrap
