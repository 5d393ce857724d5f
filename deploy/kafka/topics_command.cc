#include <poll.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/kafka/admin.h"
#include "common/kafka/cluster.h"
#include "common/thread/clock.h"
#include "deploy/kafka/commands.h"
#include "deploy/kafka/flags.h"
#include "deploy/kafka/topics_table.h"

namespace satrap {
namespace {

constexpr char kHelp[] =
    R"(usage: satrap topics [RUN]
       satrap topics [TOPIC...] --brokers HOST:PORT[,...] [--group G] [--setting NAME=VALUE]
       satrap topics TOPIC --make N --brokers HOST:PORT[,...]

Prints the partitions of Kafka topics and the offsets that the broker has.

With RUN (default: the newest training) those that the run reads, how far its newest cut is behind,
and, while it runs, how far it has read. With --brokers the TOPICs (default: all), and how far a
consumer group is behind. --make N makes a topic with N partitions.
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
  ASSIGN_OR_RETURN(const std::vector<TopicsRow> rows,
                   AskTopics(*cluster, partitions, !group.empty()));
  TopicsColumns columns;
  columns.committed = !group.empty();
  return absl::StrCat("cluster ", cluster->id(), "\n", TopicsTableText(rows, columns));
}

// Returns when the brokers know the topic.
absl::Status MakeTopic(const KafkaFlags& flags, int partitions) {
  constexpr int64_t kKnownMs = 15000;
  ASSIGN_OR_RETURN(KafkaConfig config, KafkaConfigOf(flags));
  const std::string& topic = flags.arguments[0];
  config.add_topics(topic);
  // Connect comes first, because it says clearly why no broker answers.
  ASSIGN_OR_RETURN(const auto cluster, KafkaCluster::Connect(config));
  ASSIGN_OR_RETURN(const auto admin, KafkaAdmin::Create(config));
  RETURN_IF_ERROR(admin->CreateTopic(topic, partitions));
  // The controller has confirmed the topic, but the other brokers learn of it a moment later.
  const int64_t deadline_ms = MonotonicMs() + kKnownMs;
  for (;;) {
    const auto known = cluster->Partitions(config);
    if (known.ok() && known->size() == static_cast<size_t>(partitions)) return absl::OkStatus();
    if (!known.ok() && !absl::IsNotFound(known.status())) return known.status();
    if (MonotonicMs() >= deadline_ms) {
      return absl::DeadlineExceededError(
          absl::StrCat("topic ", topic, " was made, but the broker has not shown it for ",
                       kKnownMs / 1000, " s"));
    }
    poll(nullptr, 0, 50);
  }
}

}  // namespace

int TopicsCommand(const std::vector<std::string>& args) {
  const absl::StatusOr<KafkaFlags> flags = ParseKafkaFlags(args, {"group", "make"});
  if (!flags.ok()) return ExitWith(flags.status(), kWrongArguments);
  if (flags->help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  const absl::StatusOr<double> make = flags->Number("make", 0, 1, 10000);
  if (!make.ok()) return ExitWith(make.status(), kWrongArguments);
  if (*make > 0) {
    if (flags->arguments.size() != 1) {
      return ExitWith(absl::InvalidArgumentError("--make takes one TOPIC"), kWrongArguments);
    }
    return ExitWith(MakeTopic(*flags, static_cast<int>(*make)), kFailed);
  }
  const absl::StatusOr<std::string> table = TopicsTable(*flags);
  if (!table.ok()) return ExitWith(table.status(), kFailed);
  std::fputs(table->c_str(), stdout);
  return 0;
}

}  // namespace satrap
