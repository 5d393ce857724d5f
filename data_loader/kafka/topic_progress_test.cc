#include "data_loader/kafka/topic_progress.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

TopicProgress::News Records(uint64_t records, int64_t latest_ms) {
  TopicProgress::News news;
  news.records = records;
  news.latest_ms = latest_ms;
  news.newest_ms = latest_ms;
  return news;
}

TopicProgress::News AtEnd() {
  TopicProgress::News news;
  news.at_end = true;
  return news;
}

class TopicProgressTest : public testing::Test {
 protected:
  TopicProgressTest() : progress_(Config()) {
    progress_.AddPartition(0, 100);
    progress_.AddPartition(3, 0);
  }
  static KafkaConfig Config() {
    KafkaConfig config;
    config.set_allowed_lateness_ms(50);
    return config;
  }
  LoaderProgress Report(int64_t now_ms = 0) const {
    LoaderProgress report;
    progress_.Report(now_ms, /*wall_ms=*/now_ms, &report);
    return report;
  }
  TopicProgress progress_;
};

TEST_F(TopicProgressTest, TheWatermarkIsTheLeastOfThePartitionsLatestTimes) {
  EXPECT_FALSE(Report().has_watermark_ms()) << "no record has come";
  progress_.Note(0, Records(2, 1000), 0);
  EXPECT_EQ(Report().watermark_ms(), 1000) << "a partition without a record has no part in it";
  progress_.Note(3, Records(1, 400), 0);
  EXPECT_EQ(Report().watermark_ms(), 400);
  progress_.Note(3, Records(1, 300), 0);
  EXPECT_EQ(Report().watermark_ms(), 400) << "the latest time of a partition never falls";
  EXPECT_EQ(progress_.LateBelow(), 350);
}

TEST_F(TopicProgressTest, AnIdlePartitionDoesNotHoldTheWatermarkBack) {
  progress_.Note(3, Records(1, 400), 0);
  progress_.Note(0, Records(1, 1000), 10000);
  progress_.Note(3, AtEnd(), 10000);
  EXPECT_EQ(Report().watermark_ms(), 400);
  progress_.Note(3, AtEnd(), 10001);
  EXPECT_EQ(Report().watermark_ms(), 1000);
  progress_.Note(0, AtEnd(), 30000);
  EXPECT_FALSE(Report().has_watermark_ms()) << "all are idle";
  progress_.Note(3, Records(1, 500), 30000);
  EXPECT_EQ(Report().watermark_ms(), 500);
}

TEST_F(TopicProgressTest, APartitionWithALagThatIsNotReadHoldsTheWatermark) {
  progress_.Note(3, Records(1, 400), 0);
  progress_.Note(0, Records(1, 1000), 33000);
  EXPECT_EQ(Report().watermark_ms(), 400) << "its turn has not come";
  TopicProgress::News nothing;
  nothing.end_offset = 50;
  progress_.Note(3, nothing, 33000);
  EXPECT_EQ(Report().watermark_ms(), 400) << "more is there, but has not arrived";
}

TEST_F(TopicProgressTest, AFinishedPartitionHasNoPartInTheWatermark) {
  progress_.Note(3, Records(1, 400), 0);
  progress_.Note(0, Records(1, 1000), 0);
  progress_.NoteFinished(3);
  progress_.NoteFinished(9);
  EXPECT_EQ(Report().watermark_ms(), 1000);
  progress_.AddPartition(3, 0);
  EXPECT_EQ(Report().watermark_ms(), 400) << "it is read again";
}

TEST_F(TopicProgressTest, ReportsEachPartitionAndTheSums) {
  TopicProgress::News news = Records(5, 1000);
  news.end_offset = 120;
  news.late = 2;
  progress_.Note(0, news, 0);
  progress_.NoteCut(0, 110);
  progress_.NoteCut(0, 105);
  progress_.NoteCut(9, 5);
  progress_.AddLost(7);
  const LoaderProgress report = Report();
  ASSERT_EQ(report.partitions_size(), 2);
  EXPECT_EQ(report.partitions(0).split(), 0u);
  EXPECT_EQ(report.partitions(0).next_offset(), 110u);
  EXPECT_EQ(report.partitions(0).end_offset(), 120u);
  EXPECT_EQ(report.partitions(0).latest_time_ms(), 1000);
  EXPECT_EQ(report.partitions(0).next_time_ms(), 1000);
  EXPECT_EQ(report.partitions(1).split(), 3u);
  EXPECT_FALSE(report.partitions(1).has_end_offset());
  EXPECT_FALSE(report.partitions(1).has_latest_time_ms());
  EXPECT_EQ(report.late_records(), 2u);
  EXPECT_EQ(report.lost_messages(), 7u);
}

TEST_F(TopicProgressTest, TheLagIsWhatIsNotInPartsYet) {
  TopicProgress::News news = Records(5, 1000);
  news.end_offset = 120;
  progress_.Note(0, news, 0);
  EXPECT_EQ(progress_.LagAt(4000, 4000).messages, 20u);
  EXPECT_EQ(progress_.LagAt(4000, 4000).seconds, 3.0);
  progress_.NoteCut(0, 120);
  EXPECT_EQ(progress_.LagAt(4000, 4000).messages, 0u);
  EXPECT_EQ(progress_.LagAt(4000, 4000).seconds, 0.0);
  progress_.AddOpenBlocks(3);
  progress_.AddOpenBlocks(-1);
  EXPECT_EQ(progress_.LagAt(0, 0).open_blocks, 2);
}

TEST_F(TopicProgressTest, ANewMessageAfterAQuietNightHasNotWaitedAllNight) {
  constexpr int64_t kMorning = 28'800'000;  // on the monotonic clock; the wall clock is 5,000 ahead
  TopicProgress::News news = Records(20, 5000);
  news.end_offset = 120;
  progress_.Note(0, news, 0);
  progress_.NoteCut(0, 120);
  TopicProgress::News quiet;
  quiet.end_offset = 120;
  progress_.Note(0, quiet, kMorning);
  quiet.end_offset = 121;
  progress_.Note(0, quiet, kMorning + 50);
  EXPECT_EQ(progress_.LagAt(kMorning + 1000, kMorning + 6000).messages, 1u);
  EXPECT_EQ(progress_.LagAt(kMorning + 1000, kMorning + 6000).seconds, 1.0);
  LoaderProgress report;
  progress_.Report(kMorning + 1000, kMorning + 6000, &report);
  EXPECT_EQ(report.partitions(0).next_time_ms(), kMorning + 5000);
}

TEST_F(TopicProgressTest, WhatWasThereWhenTheEndWasToldAndIsReadSinceBoundsTheLag) {
  TopicProgress::News news = Records(20, 1000);
  news.end_offset = 120;
  progress_.Note(0, news, 3000);
  progress_.NoteCut(0, 120);
  news = TopicProgress::News();
  news.end_offset = 130;  // more messages came before the maker saw that all were read
  progress_.Note(0, news, 4000);
  EXPECT_EQ(progress_.LagAt(4500, 4500).seconds, 1.5);
}

}  // namespace
}  // namespace satrap
