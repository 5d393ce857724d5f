#include "deploy/kafka/topics_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace satrap {
namespace {

TopicsRow Row(int partition, int64_t first, int64_t end) {
  TopicsRow row;
  row.partition = {"clicks", partition};
  row.range = {first, end};
  return row;
}

TEST(TopicsTable, HasALineForEachPartition) {
  EXPECT_EQ(TopicsTableText({Row(0, 3, 10), Row(1, 0, 0)}, {}),
            "topic  partition          first            end\n"
            "clicks         0              3             10\n"
            "clicks         1              0              0\n");
}

TEST(TopicsTable, LagIsWhatTheBrokerHasAfterTheCommit) {
  TopicsRow committed = Row(0, 0, 100);
  committed.committed = 40;
  EXPECT_EQ(LagOf({committed}), 60);
  // Without a commit, all messages that the broker has are still to be read.
  EXPECT_EQ(LagOf({Row(0, 30, 100)}), 70);
  // Expired messages do not count as lag. A commit beyond the latest offset, from before the topic
  // was made anew, counts as no lag.
  TopicsRow expired = Row(0, 50, 100);
  expired.committed = 10;
  EXPECT_EQ(LagOf({expired}), 50);
  TopicsRow beyond = Row(0, 0, 5);
  beyond.committed = 40;
  EXPECT_EQ(LagOf({beyond}), 0);
  EXPECT_EQ(LagOf({committed, expired}), 110);
}

TEST(TopicsTable, ShowsCommitsAndWhatIsReadWhereTheyAreKnown) {
  TopicsRow known = Row(0, 0, 100);
  known.committed = 40;
  known.read = 90;
  TopicsColumns columns;
  columns.committed = true;
  columns.read = true;
  EXPECT_EQ(
      TopicsTableText({known, Row(1, 0, 7)}, columns),
      "topic  partition          first            end      committed            lag           "
      "read\n"
      "clicks         0              0            100             40             60           "
      "  90\n"
      "clicks         1              0              7              -              7           "
      "   -\n");
}

TEST(TopicsTable, LagOfARunIsWhatItsNewestCutDoesNotHoldUpToWhereItStops) {
  TopicsRow row = Row(0, 0, 1000);
  row.committed = 999;  // may come from another job with the same group
  row.in_cut = 40;
  EXPECT_EQ(LagOf({row}), 960);
  row.until = 100;
  EXPECT_EQ(LagOf({row}), 60);
  row.in_cut = 100;
  EXPECT_EQ(LagOf({row}), 0) << "what is written later is none of it";
}

StreamOfRun Stream(absl::optional<uint64_t> end) {
  StreamOfRun stream;
  stream.topics.set_cluster_id("C");
  for (const int partition : {0, 2}) {
    TopicPartition* const added = stream.topics.add_partitions();
    added->set_topic("clicks");
    added->set_partition(partition);
    added->set_start(0);
    if (end.has_value()) added->set_end(*end);
  }
  return stream;
}

TEST(StreamText, OfATrainStreamTellsCutCommitAndReading) {
  StreamOfRun stream = Stream(absl::nullopt);
  stream.in_cut = {40, 50};
  stream.status.emplace();
  stream.status->set_lag_messages(12);
  stream.status->set_lag_seconds(1.5);
  TopicPartitionStatus* const read = stream.status->add_partitions();
  *read->mutable_partition() = stream.topics.partitions(1);
  read->mutable_progress()->set_next_offset(95);
  std::vector<TopicsRow> asked = {Row(0, 0, 100), Row(2, 0, 100)};
  asked[0].committed = 30;
  EXPECT_EQ(StreamText(stream, "G", asked),
            "cluster C, group G\n"
            "topic  partition          first            end         in cut      committed          "
            "  lag           read\n"
            "clicks         0              0            100             40             30          "
            "   60              -\n"
            "clicks         2              0            100             50              -          "
            "   50             95\n"
            "lag behind the newest cut: 110 messages\n"
            "lag of reading: 12 messages, 1.5 s\n");
}

TEST(StreamText, OfAStreamThatIsOnlyScoredTellsNoLag) {
  EXPECT_EQ(StreamText(Stream(70), "G", {Row(0, 0, 100), Row(2, 0, 100)}),
            "cluster C\n"
            "topic  partition          first            end          until\n"
            "clicks         0              0            100             70\n"
            "clicks         2              0            100             70\n");
}

}  // namespace
}  // namespace satrap
