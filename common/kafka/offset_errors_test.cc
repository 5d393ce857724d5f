#include "common/kafka/offset_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/kafka/broker_outage.h"

namespace satrap {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const KafkaPartition kPartition{"clicks", 3};

TEST(OffsetErrorsTest, AnOffsetThatDoesNotExceedTheLastOneIsAFaultOfTheClient) {
  EXPECT_TRUE(CheckOffset(kPartition, 8, 8).ok());
  EXPECT_TRUE(CheckOffset(kPartition, 12, 8).ok()) << "a gap";
  const absl::Status status = CheckOffset(kPartition, 7, 8);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("offset 7 of clicks/3 arrived, but 8"));
}

TEST(OffsetErrorsTest, WhatIsBeforeTheFirstOffsetOrAfterTheEndIsLost) {
  absl::optional<MessageSource::Lost> lost;
  absl::Status status = OffsetRefused(kPartition, 10, {50, 90}, &lost);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("offset 10 of clicks/3"), HasSubstr("still has is 50")));
  EXPECT_EQ(lost->found, 50);
  status = OffsetRefused(kPartition, 91, {50, 90}, &lost);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ends at 90"));
  EXPECT_EQ(lost->wanted, 91);
  EXPECT_EQ(lost->found, 90);
}

TEST(OffsetErrorsTest, AnOffsetThatTheBrokerHasAfterAllIsNotLost) {
  for (const int64_t wanted : {50, 70, 90}) {
    absl::optional<MessageSource::Lost> lost;
    const absl::Status status = OffsetRefused(kPartition, wanted, {50, 90}, &lost);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_FALSE(lost.has_value());
  }
}

TEST(BrokerOutageTest, TheFirstReaderWarnsAndTheLastOneTellsTheEnd) {
  BrokerOutage outage;
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(outage.Begin());
    EXPECT_FALSE(outage.Begin());
    EXPECT_FALSE(outage.End());
    EXPECT_TRUE(outage.End());
  }
}

}  // namespace
}  // namespace satrap
