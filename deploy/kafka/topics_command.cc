#include <poll.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/kafka/admin.h"
#include "common/kafka/cluster.h"
#include "common/thread/clock.h"
#include "deploy/kafka/commands.h"
#include "deploy/kafka/kafka_flags.h"
#include "deploy/kafka/topics_table.h"

namespace satrap {
namespace {

constexpr char kUsage[] =
    R"(usage: satrap topics [RUN]
       satrap topics [TOPIC...] --brokers HOST:PORT[,...] [--group G] [--setting NAME=VALUE]
       satrap topics TOPIC --make N --brokers HOST:PORT[,...]

Prints the partitions of Kafka topics and the offsets that the broker has.

With RUN (default: the newest training) those that the run reads, how far its newest cut lags, and,
while it runs, how far it has read. With --brokers the TOPICs (default: all), and how far a consumer
group lags. --make N makes a topic with N partitions.
)";

struct TopicsFlags {
  ClusterFlags cluster;
  std::string group;
  absl::optional<int> make;

  std::vector<Flag> Table() {
    std::vector<Flag> flags = cluster.Table();
    flags.push_back(TextFlag("group", "G", "a consumer group", &group));
    flags.push_back(NumberFlag("make", "N", "partitions of the topic to make", &make, 1, 10000));
    return flags;
  }
};

absl::StatusOr<std::string> TopicsTable(const TopicsFlags& flags,
                                        const std::vector<std::string>& topics) {
  ASSIGN_OR_RETURN(KafkaConfig config, flags.cluster.Config());
  const std::string& group = flags.group;
  if (!group.empty()) config.set_group_id(group);
  for (const std::string& topic : topics) config.add_topics(topic);
  ASSIGN_OR_RETURN(const auto cluster, KafkaCluster::Connect(config));
  ASSIGN_OR_RETURN(const std::vector<KafkaPartition> partitions,
                   topics.empty() ? cluster->AllPartitions() : cluster->Partitions(config));
  ASSIGN_OR_RETURN(const std::vector<TopicsRow> rows,
                   AskTopics(*cluster, partitions, !group.empty()));
  TopicsColumns columns;
  columns.committed = !group.empty();
  return absl::StrCat("cluster ", cluster->id(), "\n", TopicsTableText(rows, columns));
}

// Creates the topic, and returns once the brokers know it.
absl::Status MakeTopic(const ClusterFlags& flags, const std::string& topic, int partitions) {
  constexpr int64_t kKnownMs = 15000;
  ASSIGN_OR_RETURN(KafkaConfig config, flags.Config());
  config.add_topics(topic);
  // Connect first, because its error says clearly why no broker answers.
  ASSIGN_OR_RETURN(const auto cluster, KafkaCluster::Connect(config));
  ASSIGN_OR_RETURN(const auto admin, KafkaAdmin::Create(config));
  RETURN_IF_ERROR(admin->CreateTopic(topic, partitions));
  // The controller has confirmed the topic, but it takes a moment until the other brokers know it.
  const int64_t deadline_ms = MonotonicMs() + kKnownMs;
  for (;;) {
    const auto known = cluster->Partitions(config);
    if (known.ok() && known->size() == static_cast<size_t>(partitions)) return absl::OkStatus();
    if (!known.ok() && !absl::IsNotFound(known.status())) return known.status();
    if (MonotonicMs() >= deadline_ms) {
      return absl::DeadlineExceededError(
          absl::StrCat("topic ", topic, " was made, but the broker has not listed it within ",
                       kKnownMs / 1000, " s"));
    }
    poll(nullptr, 0, 50);
  }
}

}  // namespace

int TopicsCommand(const std::vector<std::string>& args) {
  TopicsFlags flags;
  if (AsksForHelp(args)) {
    std::printf("%s\n%s", kUsage, FlagsHelp(flags.Table()).c_str());
    return 0;
  }
  const auto topics = ParseFlags(args, flags.Table());
  if (!topics.ok()) return ExitWith(topics.status(), kWrongArguments);
  if (flags.make.has_value()) {
    if (topics->size() != 1) {
      return ExitWith(absl::InvalidArgumentError("--make takes one TOPIC"), kWrongArguments);
    }
    return ExitWith(MakeTopic(flags.cluster, (*topics)[0], *flags.make), kFailed);
  }
  const absl::StatusOr<std::string> table = TopicsTable(flags, *topics);
  if (!table.ok()) return ExitWith(table.status(), kFailed);
  std::fputs(table->c_str(), stdout);
  return 0;
}

}  // namespace satrap
