#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/kafka/cluster.h"
#include "deploy/kafka/commands.h"
#include "deploy/kafka/flags.h"

namespace satrap {
namespace {

constexpr char kHelp[] =
    R"(usage: satrap topics [TOPIC...] --brokers HOST:PORT[,...] [--group G] [--setting NAME=VALUE]

Prints the partitions of Kafka topics (default: all of them), the offsets that the broker has, and
how far a consumer group is behind. A run's group is data.kafka.group_id of its job.
)";

absl::StatusOr<std::string> TopicsTable(const KafkaFlags& flags) {
  ASSIGN_OR_RETURN(KafkaConfig config, KafkaConfigOf(flags));
  const std::string group = flags.Get("group");
  if (!group.empty()) config.set_group_id(group);
  for (const std::string& topic : flags.arguments) config.add_topics(topic);
  ASSIGN_OR_RETURN(const auto cluster, KafkaCluster::Connect(config));
  ASSIGN_OR_RETURN(const std::vector<KafkaPartition> partitions, flags.arguments.empty()
                                                                     ? cluster->AllPartitions()
                                                                     : cluster->Partitions(config));
  ASSIGN_OR_RETURN(const std::vector<KafkaOffsetRange> ranges, cluster->Ranges(partitions));
  std::vector<absl::optional<int64_t>> committed(partitions.size());
  if (!group.empty()) {
    ASSIGN_OR_RETURN(committed, cluster->Committed(partitions));
  }
  size_t width = 5;
  for (const KafkaPartition& partition : partitions) {
    width = std::max(width, partition.topic.size());
  }
  const int columns = static_cast<int>(width);
  std::string table = absl::StrFormat("cluster %s\n%-*s %9s %14s %14s", cluster->id(), columns,
                                      "topic", "partition", "first", "end");
  absl::StrAppend(&table,
                  group.empty() ? "\n" : absl::StrFormat(" %14s %14s\n", "committed", "lag"));
  for (size_t i = 0; i < partitions.size(); ++i) {
    absl::StrAppendFormat(&table, "%-*s %9d %14d %14d", columns, partitions[i].topic,
                          partitions[i].partition, ranges[i].earliest, ranges[i].latest);
    if (!group.empty()) {
      // Without a commit everything that the broker has is still to be read.
      const int64_t from = std::max(committed[i].value_or(ranges[i].earliest), ranges[i].earliest);
      absl::StrAppendFormat(&table, " %14s %14d",
                            committed[i].has_value() ? absl::StrCat(*committed[i]) : "-",
                            std::max<int64_t>(ranges[i].latest - from, 0));
    }
    table.push_back('\n');
  }
  return table;
}

}  // namespace

int TopicsCommand(const std::vector<std::string>& args) {
  const absl::StatusOr<KafkaFlags> flags = ParseKafkaFlags(args, {"group"});
  if (!flags.ok()) {
    std::fprintf(stderr, "error: %s\n", std::string(flags.status().message()).c_str());
    return 2;
  }
  if (flags->help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  const absl::StatusOr<std::string> table = TopicsTable(*flags);
  if (!table.ok()) {
    std::fprintf(stderr, "error: %s\n", std::string(table.status().message()).c_str());
    return 1;
  }
  std::fputs(table->c_str(), stdout);
  return 0;
}

}  // namespace satrap
