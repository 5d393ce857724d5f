#include "common/kafka/cluster.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/near_match.h"
#include "common/base/status_macros.h"
#include "common/kafka/client.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

// The time limit of one attempt of a query. It is short, so that a new error of the connections is
// seen soon.
constexpr int kAttemptMs = 500;

// Asks for the metadata of all topics. Fills `partitions` in no particular order.
rd_kafka_resp_err_t AskPartitions(rd_kafka_t* client, int timeout_ms,
                                  std::vector<KafkaPartition>* partitions) {
  const rd_kafka_metadata_t* metadata = nullptr;
  const rd_kafka_resp_err_t error = rd_kafka_metadata(client, 1, nullptr, &metadata, timeout_ms);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return error;
  for (int t = 0; t < metadata->topic_cnt; ++t) {
    const rd_kafka_metadata_topic_t& topic = metadata->topics[t];
    for (int p = 0; p < topic.partition_cnt; ++p) {
      partitions->push_back({topic.topic, topic.partitions[p].id});
    }
  }
  rd_kafka_metadata_destroy(metadata);
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

bool IsOfBroker(const std::string& topic) {
  return topic == "__consumer_offsets" || topic == "__transaction_state" ||
         topic == "__cluster_metadata";
}

}  // namespace

KafkaCluster::KafkaCluster(std::unique_ptr<KafkaClient> client, absl::Duration limit)
    : client_(std::move(client)), limit_(limit) {}

KafkaCluster::~KafkaCluster() = default;

absl::StatusOr<std::unique_ptr<KafkaCluster>> KafkaCluster::Connect(const KafkaConfig& config,
                                                                    absl::Duration limit,
                                                                    Logger logger) {
  // The client is a reader for two reasons: the latest offset must be the one that a reader sees,
  // and a group is needed.
  KafkaClient::Options options;
  options.role = KafkaRole::kReader;
  options.logger = std::move(logger);
  ASSIGN_OR_RETURN(auto client, KafkaClient::Create(config, std::move(options)));
  std::unique_ptr<KafkaCluster> self(new KafkaCluster(std::move(client), limit));
  const int64_t deadline_ms = MonotonicMs() + self->LimitMs();
  for (;;) {
    const int64_t left_ms = deadline_ms - MonotonicMs();
    if (left_ms <= 0) {
      return self->client_->Unreachable(absl::StrCat("within ", absl::FormatDuration(limit)));
    }
    char* const id = rd_kafka_clusterid(self->client_->get(),
                                        static_cast<int>(std::min<int64_t>(left_ms, kAttemptMs)));
    if (id != nullptr) {
      self->id_ = id;
      rd_kafka_mem_free(self->client_->get(), id);
      return self;
    }
    self->client_->Poll(0);
    if (self->client_->trouble().hopeless) return self->client_->Unreachable("");
  }
}

absl::StatusOr<std::vector<KafkaPartition>> KafkaCluster::AllPartitions() const {
  std::vector<KafkaPartition> partitions;
  const rd_kafka_resp_err_t error = AskPartitions(client_->get(), LimitMs(), &partitions);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return client_->Failed(absl::StrCat("cannot list the topics at ", client_->brokers()), error);
  }
  partitions.erase(std::remove_if(partitions.begin(), partitions.end(),
                                  [](const auto& p) { return IsOfBroker(p.topic); }),
                   partitions.end());
  std::sort(partitions.begin(), partitions.end());
  return partitions;
}

absl::StatusOr<std::vector<KafkaPartition>> KafkaCluster::Partitions(
    const KafkaConfig& config) const {
  ASSIGN_OR_RETURN(const std::vector<KafkaPartition> all, AllPartitions());
  std::set<std::string> there;
  for (const KafkaPartition& partition : all) there.insert(partition.topic);
  std::set<std::string> wanted;
  for (const std::string& topic : config.topics()) {
    if (there.count(topic) == 0) {
      return absl::NotFoundError(
          absl::StrCat("there is no topic ", topic, " at ", client_->brokers(),
                       ", or the login has no right to read it",
                       DidYouMean(topic, std::vector<std::string>(there.begin(), there.end()))));
    }
    wanted.insert(topic);
  }
  if (!config.topic_pattern().empty()) {
    const size_t named = wanted.size();
    for (const std::string& topic : there) {
      // Dead letters that the job itself has written must not come back as input.
      if (topic != config.dead_letter_topic() &&
          fnmatch(config.topic_pattern().c_str(), topic.c_str(), 0) == 0) {
        wanted.insert(topic);
      }
    }
    if (wanted.size() == named && named == 0) {
      return absl::NotFoundError(
          absl::StrCat("no topic at ", client_->brokers(), " matches ", config.topic_pattern()));
    }
  }
  std::vector<KafkaPartition> partitions;
  for (const KafkaPartition& partition : all) {
    if (wanted.count(partition.topic) > 0) partitions.push_back(partition);
  }
  return partitions;
}

int64_t KafkaCluster::DeadlineMs() const { return MonotonicMs() + LimitMs(); }

absl::StatusOr<std::vector<int64_t>> KafkaCluster::AskOffsets(
    absl::Span<const KafkaPartition> partitions, int64_t time_ms, int64_t deadline_ms) const {
  std::vector<int64_t> offsets;
  if (partitions.empty()) return offsets;
  TopicPartitions list(partitions.size());
  for (const KafkaPartition& partition : partitions) list.Add(partition, time_ms);
  const int64_t left_ms = std::max<int64_t>(deadline_ms - MonotonicMs(), 1);
  const rd_kafka_resp_err_t error =
      rd_kafka_offsets_for_times(client_->get(), list.get(), static_cast<int>(left_ms));
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return client_->Failed(absl::StrCat("cannot ask for offsets of ", partitions[i].ToString(),
                                          " at ", client_->brokers()),
                             list[i].err);
    }
    offsets.push_back(list[i].offset);
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return client_->Failed(absl::StrCat("cannot ask for offsets of ", partitions[0].ToString(),
                                        " at ", client_->brokers()),
                           error);
  }
  client_->NoteAnswer();
  return offsets;
}

absl::StatusOr<std::vector<KafkaOffsetRange>> KafkaCluster::Ranges(
    absl::Span<const KafkaPartition> partitions) const {
  const int64_t deadline_ms = DeadlineMs();
  // In the broker's protocol -2 asks for the first offset and -1 for the last.
  ASSIGN_OR_RETURN(const std::vector<int64_t> earliest,
                   AskOffsets(partitions, RD_KAFKA_OFFSET_BEGINNING, deadline_ms));
  ASSIGN_OR_RETURN(const std::vector<int64_t> latest,
                   AskOffsets(partitions, RD_KAFKA_OFFSET_END, deadline_ms));
  std::vector<KafkaOffsetRange> ranges;
  for (size_t i = 0; i < partitions.size(); ++i) ranges.push_back({earliest[i], latest[i]});
  return ranges;
}

absl::StatusOr<std::vector<int64_t>> KafkaCluster::OffsetsAt(
    absl::Span<const KafkaPartition> partitions, int64_t time_ms) const {
  const int64_t deadline_ms = DeadlineMs();
  // Asks for the latest offsets first: a message that arrives between the two answers then has a
  // higher offset and is not skipped.
  ASSIGN_OR_RETURN(const std::vector<int64_t> latest,
                   AskOffsets(partitions, RD_KAFKA_OFFSET_END, deadline_ms));
  // Negative times have another meaning in the protocol, so 0 is used instead of them. The answer
  // is the same, because all messages are later.
  ASSIGN_OR_RETURN(std::vector<int64_t> offsets,
                   AskOffsets(partitions, std::max<int64_t>(time_ms, 0), deadline_ms));
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] < 0) offsets[i] = latest[i];
  }
  return offsets;
}

absl::StatusOr<std::vector<absl::optional<int64_t>>> KafkaCluster::Committed(
    absl::Span<const KafkaPartition> partitions) const {
  TopicPartitions list(partitions.size());
  for (const KafkaPartition& partition : partitions) list.Add(partition, RD_KAFKA_OFFSET_INVALID);
  const rd_kafka_resp_err_t error = rd_kafka_committed(client_->get(), list.get(), LimitMs());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return client_->Failed(
        absl::StrCat("cannot ask ", client_->brokers(), " for the group's offsets"), error);
  }
  std::vector<absl::optional<int64_t>> offsets;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return KafkaError(
          absl::StrCat("cannot ask for the group's offset of ", partitions[i].ToString()),
          list[i].err);
    }
    offsets.push_back(list[i].offset >= 0 ? absl::optional<int64_t>(list[i].offset)
                                          : absl::nullopt);
  }
  return offsets;
}

absl::Status KafkaCluster::Commit(absl::Span<const KafkaPlace> places) const {
  if (places.empty()) return absl::OkStatus();
  TopicPartitions list(places.size());
  for (const KafkaPlace& place : places) list.Add(place.partition, place.offset);
  const std::string doing = absl::StrCat("cannot commit offsets at ", client_->brokers());
  const KafkaQueue queue(rd_kafka_queue_new(client_->get()));
  rd_kafka_resp_err_t error =
      rd_kafka_commit_queue(client_->get(), list.get(), queue.get(), nullptr, nullptr);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError(doing, error);
  // rd_kafka_commit_queue is used because rd_kafka_commit has no time limit. If a broker is
  // unreachable, rd_kafka_commit waits as long as a group's session lasts; if a broker hangs, it
  // waits for the time-out of the socket.
  const KafkaEvent event(rd_kafka_queue_poll(queue.get(), LimitMs()));
  if (event == nullptr) return client_->Failed(doing, RD_KAFKA_RESP_ERR__TIMED_OUT);
  const rd_kafka_topic_partition_list_t* const done =
      rd_kafka_event_topic_partition_list(event.get());
  for (int i = 0; done != nullptr && i < done->cnt; ++i) {
    const rd_kafka_topic_partition_t& each = done->elems[i];
    if (each.err == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    return KafkaError(absl::StrCat("cannot commit offset ", each.offset, " of ",
                                   KafkaPartition{each.topic, each.partition}.ToString()),
                      each.err);
  }
  error = rd_kafka_event_error(event.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return client_->Failed(doing, error);
  client_->NoteAnswer();
  return absl::OkStatus();
}

}  // namespace satrap
