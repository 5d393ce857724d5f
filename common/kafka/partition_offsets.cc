#include "common/kafka/partition_offsets.h"

#include <map>
#include <memory>
#include <string>

namespace satrap {
namespace {

using KafkaTopic =
    std::unique_ptr<rd_kafka_topic_t, KafkaDestroyer<rd_kafka_topic_t, rd_kafka_topic_destroy>>;

struct MetadataDeleter {
  void operator()(const rd_kafka_metadata_t* metadata) const {
    rd_kafka_metadata_destroy(metadata);
  }
};

// Asks for the partitions whose indices are in `of`, in one query. False if there is no answer.
bool AskAtOnce(KafkaClient* client, const std::vector<KafkaPartition>& partitions,
               const std::vector<size_t>& of, int64_t which,
               std::vector<PartitionOffset>* answers) {
  TopicPartitions list(of.size());
  for (const size_t i : of) list.Add(partitions[i], which);
  const rd_kafka_resp_err_t error =
      rd_kafka_offsets_for_times(client->get(), list.get(), kPartitionQueryMs);
  for (size_t at = 0; at < of.size(); ++at) {
    PartitionOffset& answer = (*answers)[of[at]];
    answer.error = list[at].err != RD_KAFKA_RESP_ERR_NO_ERROR ? list[at].err : error;
    // If there is no answer for a partition, its offset still has the negative value of `which`.
    if (answer.error == RD_KAFKA_RESP_ERR_NO_ERROR && list[at].offset < 0) {
      answer.error = RD_KAFKA_RESP_ERR__TIMED_OUT;
    }
    if (answer.error == RD_KAFKA_RESP_ERR_NO_ERROR) answer.offset = list[at].offset;
  }
  return error == RD_KAFKA_RESP_ERR_NO_ERROR;
}

// Groups the partitions by the broker that leads them. A partition without a leader gets an error
// as its answer.
std::map<int32_t, std::vector<size_t>> ByLeader(KafkaClient* client,
                                                const std::vector<KafkaPartition>& partitions,
                                                std::vector<PartitionOffset>* answers) {
  std::map<KafkaPartition, size_t> index_of;
  // librdkafka asks for the leaders of those topics for which the client has handles.
  std::map<std::string, KafkaTopic> topics;
  for (size_t i = 0; i < partitions.size(); ++i) {
    index_of[partitions[i]] = i;
    KafkaTopic& topic = topics[partitions[i].topic];
    if (topic != nullptr) continue;
    topic.reset(rd_kafka_topic_new(client->get(), partitions[i].topic.c_str(), nullptr));
  }
  std::map<int32_t, std::vector<size_t>> by_leader;
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(client->get(), /*all_topics=*/0, nullptr, &metadata, kPartitionQueryMs) !=
      RD_KAFKA_RESP_ERR_NO_ERROR) {
    return by_leader;
  }
  const std::unique_ptr<const rd_kafka_metadata_t, MetadataDeleter> owned(metadata);
  for (int t = 0; t < metadata->topic_cnt; ++t) {
    const rd_kafka_metadata_topic_t& topic = metadata->topics[t];
    for (int p = 0; p < topic.partition_cnt; ++p) {
      const rd_kafka_metadata_partition_t& partition = topic.partitions[p];
      const auto at = index_of.find({topic.topic, partition.id});
      if (at == index_of.end()) continue;
      if (partition.leader >= 0) {
        by_leader[partition.leader].push_back(at->second);
      } else {
        (*answers)[at->second].error = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
      }
    }
  }
  return by_leader;
}

}  // namespace

std::vector<PartitionOffset> AskOffsets(KafkaClient* client,
                                        const std::vector<KafkaPartition>& partitions,
                                        int64_t which, const std::function<bool()>& stop) {
  std::vector<PartitionOffset> answers(partitions.size());
  std::vector<size_t> all(partitions.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  if (all.empty() || stop() || AskAtOnce(client, partitions, all, which, &answers) || stop()) {
    return answers;
  }
  const auto by_leader = ByLeader(client, partitions, &answers);
  // All partitions have the same leader, which has just been asked.
  if (by_leader.size() == 1 && by_leader.begin()->second.size() == all.size()) return answers;
  for (const auto& [leader, of] : by_leader) {
    if (stop()) break;
    AskAtOnce(client, partitions, of, which, &answers);
  }
  return answers;
}

}  // namespace satrap
