#include "deploy/kafka/topics_table.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "common/kafka/cluster.h"

namespace satrap {
namespace {

std::string OffsetText(const absl::optional<int64_t>& offset) {
  return offset.has_value() ? absl::StrCat(*offset) : "-";
}

int64_t LagOf(const TopicsRow& row) {
  // Messages that have expired can no longer be read, so they do not count as lag.
  const absl::optional<int64_t>& known = row.in_cut.has_value() ? row.in_cut : row.committed;
  const int64_t from = std::max(known.value_or(row.range.earliest), row.range.earliest);
  const int64_t to = std::min(row.until.value_or(row.range.latest), row.range.latest);
  return std::max<int64_t>(to - from, 0);
}

// The offset that a loader reads next in this partition; absent if it is not known.
absl::optional<int64_t> ReadOffset(const TopicsStatus& status, const KafkaPartition& partition) {
  for (const TopicPartitionStatus& known : status.partitions()) {
    if (known.partition().topic() != partition.topic ||
        known.partition().partition() != partition.partition ||
        !known.progress().has_next_offset()) {
      continue;
    }
    return static_cast<int64_t>(known.progress().next_offset());
  }
  return absl::nullopt;
}

}  // namespace

int64_t LagOf(const std::vector<TopicsRow>& rows) {
  int64_t lag = 0;
  for (const TopicsRow& row : rows) lag += LagOf(row);
  return lag;
}

std::string TopicsTableText(const std::vector<TopicsRow>& rows, const TopicsColumns& columns) {
  size_t longest = 5;
  for (const TopicsRow& row : rows) longest = std::max(longest, row.partition.topic.size());
  const int width = static_cast<int>(longest);
  std::string text =
      absl::StrFormat("%-*s %9s %14s %14s", width, "topic", "partition", "first", "end");
  if (columns.until) absl::StrAppendFormat(&text, " %14s", "until");
  if (columns.in_cut) absl::StrAppendFormat(&text, " %14s", "in cut");
  if (columns.committed) absl::StrAppendFormat(&text, " %14s", "committed");
  if (columns.in_cut || columns.committed) absl::StrAppendFormat(&text, " %14s", "lag");
  if (columns.read) absl::StrAppendFormat(&text, " %14s", "read");
  text.push_back('\n');
  for (const TopicsRow& row : rows) {
    absl::StrAppendFormat(&text, "%-*s %9d %14d %14d", width, row.partition.topic,
                          row.partition.partition, row.range.earliest, row.range.latest);
    if (columns.until) absl::StrAppendFormat(&text, " %14s", OffsetText(row.until));
    if (columns.in_cut) absl::StrAppendFormat(&text, " %14s", OffsetText(row.in_cut));
    if (columns.committed) absl::StrAppendFormat(&text, " %14s", OffsetText(row.committed));
    if (columns.in_cut || columns.committed) absl::StrAppendFormat(&text, " %14d", LagOf(row));
    if (columns.read) absl::StrAppendFormat(&text, " %14s", OffsetText(row.read));
    text.push_back('\n');
  }
  return text;
}

absl::StatusOr<std::vector<TopicsRow>> AskTopics(const KafkaCluster& cluster,
                                                 const std::vector<KafkaPartition>& partitions,
                                                 bool group) {
  ASSIGN_OR_RETURN(const std::vector<KafkaOffsetRange> ranges, cluster.Ranges(partitions));
  std::vector<absl::optional<int64_t>> committed(partitions.size());
  if (group) {
    ASSIGN_OR_RETURN(committed, cluster.Committed(partitions));
  }
  std::vector<TopicsRow> rows;
  for (size_t i = 0; i < partitions.size(); ++i) {
    TopicsRow row;
    row.partition = partitions[i];
    row.range = ranges[i];
    row.committed = committed[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<std::string> StreamText(const KafkaConfig& kafka, const StreamOfRun& stream) {
  ASSIGN_OR_RETURN(const auto cluster, KafkaCluster::Connect(kafka));
  if (cluster->id() != stream.topics.cluster_id()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run reads topics of the Kafka cluster ", stream.topics.cluster_id(),
                     ", but its brokers now lead to the cluster ", cluster->id()));
  }
  std::vector<KafkaPartition> partitions;
  for (const TopicPartition& partition : stream.topics.partitions()) {
    partitions.push_back({partition.topic(), partition.partition()});
  }
  // Ask for the group's offsets only for the train stream, the only one for which the group commits
  // offsets. It is also the only one that has `in_cut`.
  ASSIGN_OR_RETURN(std::vector<TopicsRow> rows,
                   AskTopics(*cluster, partitions, /*group=*/!stream.in_cut.empty()));
  return StreamText(stream, kafka.group_id(), std::move(rows));
}

std::string StreamText(const StreamOfRun& stream, const std::string& group,
                       std::vector<TopicsRow> asked) {
  TopicsColumns columns;
  columns.in_cut = columns.committed = !stream.in_cut.empty();
  columns.read = stream.status.has_value();
  for (size_t j = 0; j < asked.size(); ++j) {
    const TopicPartition& partition = stream.topics.partitions(static_cast<int>(j));
    if (partition.has_end()) asked[j].until = static_cast<int64_t>(partition.end());
    columns.until |= partition.has_end();
    if (j < stream.in_cut.size()) asked[j].in_cut = static_cast<int64_t>(stream.in_cut[j]);
    if (columns.read) asked[j].read = ReadOffset(*stream.status, asked[j].partition);
  }
  std::string text = absl::StrCat("cluster ", stream.topics.cluster_id(),
                                  columns.committed ? ", group " + group : "", "\n",
                                  TopicsTableText(asked, columns));
  if (columns.in_cut) {
    absl::StrAppend(&text, "lag behind the newest cut: ", LagOf(asked), " messages\n");
  }
  if (columns.read && stream.status->has_lag_messages()) {
    absl::StrAppend(&text, "lag of reading: ", Counted(stream.status->lag_messages(), "message"));
    if (stream.status->has_lag_seconds()) {
      absl::StrAppendFormat(&text, ", %.1f s", stream.status->lag_seconds());
    }
    text.push_back('\n');
  }
  return text;
}

}  // namespace satrap
