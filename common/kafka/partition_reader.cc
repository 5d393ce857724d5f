#include "common/kafka/partition_reader.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/kafka/client.h"
#include "common/kafka/offset_errors.h"
#include "common/kafka/partition_watch.h"
#include "common/numeric/hash.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

// The longest wait before the queues are checked again, in case librdkafka does not report that a
// queue is no longer empty.
constexpr int64_t kLookAgainMs = 200;
// The limit for asking which offsets a broker still has, after it refused one.
constexpr int kFindLostMs = 5000;

struct QueueDeleter {
  void operator()(rd_kafka_queue_t* queue) const { rd_kafka_queue_destroy(queue); }
};

}  // namespace

struct PartitionReader::Partition {
  KafkaPartition name;
  size_t index = 0;
  std::unique_ptr<rd_kafka_queue_t, QueueDeleter> queue;
  size_t queue_bytes = 0;
  int64_t next = 0;
  bool at_end = false;
  absl::Status status;
  absl::optional<Lost> lost;
  double mean_bytes = 0;  // size of a message, over the last batches
  std::vector<rd_kafka_message_t*> taken;
};

PartitionReader::PartitionReader(const KafkaConfig& config, Logger logger)
    : config_(config), logger_(std::move(logger)) {}

PartitionReader::~PartitionReader() {
  watch_.reset();
  guard_.reset();
  // Queues are destroyed before the client, because they and the messages in them refer to it.
  for (const auto& partition : partitions_) {
    rd_kafka_queue_cb_event_enable(partition->queue.get(), nullptr, nullptr);
  }
  partitions_.clear();
  client_.reset();
}

absl::StatusOr<std::unique_ptr<PartitionReader>> PartitionReader::Open(
    const KafkaConfig& config, std::vector<KafkaPlace> places, Logger logger,
    std::shared_ptr<BrokerOutage> outage, AnchorSink keep) {
  std::set<KafkaPartition> once;
  for (const KafkaPlace& place : places) {
    CHECK(once.insert(place.partition).second) << place.partition.ToString() << " twice";
  }
  KafkaClient::Options options;
  options.role = KafkaRole::kReader;
  options.partitions = places.size();
  options.logger = logger;
  std::unique_ptr<PartitionReader> self(new PartitionReader(config, std::move(logger)));
  ASSIGN_OR_RETURN(self->client_, KafkaClient::Create(config, std::move(options)));
  if (outage == nullptr) outage = std::make_shared<BrokerOutage>();
  RETURN_IF_ERROR(self->Assign(std::move(places), std::move(outage), std::move(keep)));
  return self;
}

absl::Status PartitionReader::Assign(std::vector<KafkaPlace> places,
                                     std::shared_ptr<BrokerOutage> outage, AnchorSink keep) {
  const auto wake = [this] {
    {
      MutexLock lock(&mutex_);
      ++arrivals_;
    }
    arrived_.NotifyAll();
  };
  guard_ = std::make_unique<PartitionGuard>(config_, places, logger_, wake, std::move(keep));
  TopicPartitions list(places.size());
  std::vector<KafkaPartition> names;
  const size_t share =
      static_cast<size_t>(config_.queue_bytes()) / std::max<size_t>(places.size(), 1);
  for (KafkaPlace& place : places) {
    auto partition = std::make_unique<Partition>();
    partition->index = partitions_.size();
    partition->queue_bytes = share;
    partition->next = place.offset;
    // Do this before the assignment, so that no message ever goes to the client's common queue.
    partition->queue.reset(rd_kafka_queue_get_partition(
        client_->get(), place.partition.topic.c_str(), place.partition.partition));
    CHECK(partition->queue != nullptr) << place.partition.ToString();
    rd_kafka_queue_forward(partition->queue.get(), nullptr);
    rd_kafka_queue_cb_event_enable(
        partition->queue.get(),
        [](rd_kafka_t*, void* self) {
          auto* const me = static_cast<PartitionReader*>(self);
          {
            MutexLock lock(&me->mutex_);
            ++me->arrivals_;
          }
          me->arrived_.NotifyAll();
        },
        this);
    list.Add(place.partition, place.offset);
    names.push_back(place.partition);
    partition->name = std::move(place.partition);
    partitions_.push_back(std::move(partition));
  }
  const rd_kafka_resp_err_t error = rd_kafka_assign(client_->get(), list.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError("cannot read partitions", error);
  watch_ = std::make_unique<PartitionWatch>(client_.get(), std::move(names),
                                            config_.broker_wait_seconds(), logger_,
                                            std::move(outage), guard_.get(), wake);
  return absl::OkStatus();
}

const KafkaPartition& PartitionReader::partition(size_t index) const {
  return partitions_[index]->name;
}
int64_t PartitionReader::next_offset(size_t index) const { return partitions_[index]->next; }
bool PartitionReader::at_end(size_t index) const { return partitions_[index]->at_end; }
absl::optional<PartitionReader::Lost> PartitionReader::lost(size_t index) const {
  return partitions_[index]->lost;
}
int64_t PartitionReader::end_offset(size_t index) const { return watch_->end_offset(index); }

bool PartitionReader::is_guarded(size_t index) const { return guard_->knows(index); }

size_t PartitionReader::queued_messages(size_t index) const {
  return rd_kafka_queue_length(partitions_[index]->queue.get());
}

absl::Status PartitionReader::Read(size_t index, size_t max_messages, MessageBatch* batch) {
  CHECK(max_messages > 0) << "the batch would be empty";
  Partition* const partition = partitions_[index].get();
  batch->Clear();
  if (!partition->status.ok()) return partition->status;
  // Read this before the status: when a look (partition_guard.h) ends, the guard first sets the
  // status, and only then reports that the look is no longer awaited.
  const bool awaits_look = guard_->awaits_look(index);
  if (guard_->any_changed()) {
    partition->status = guard_->status(index);
    if (!partition->status.ok()) return partition->status;
  }
  if (watch_->failed()) return watch_->status();
  std::vector<rd_kafka_message_t*>& taken = partition->taken;
  taken.resize(max_messages);
  const ssize_t count = awaits_look ? 0
                                    : rd_kafka_consume_batch_queue(partition->queue.get(), 0,
                                                                   taken.data(), max_messages);
  // Messages that have arrived are returned first. librdkafka itself does not report that a topic
  // was deleted.
  if (count <= 0 && watch_->missing(index)) {
    partition->status = absl::NotFoundError(
        absl::StrCat("cannot read ", partition->name.ToString(), " from offset ", partition->next,
                     ": the broker says that there is no such topic or partition any more"));
    return partition->status;
  }
  size_t bytes = 0;
  for (ssize_t i = 0; i < count; ++i) {
    rd_kafka_message_t* const message = taken[static_cast<size_t>(i)];
    bytes += message->len + message->key_len;
    // Messages after an error are not returned, but must be destroyed.
    if (!partition->status.ok()) {
      rd_kafka_message_destroy(message);
    } else {
      partition->status = Take(partition, message, batch);
    }
  }
  if (!batch->empty()) {
    const size_t last = batch->size() - 1;
    guard_->NoteRead(index, {batch->offset(last), Xxh64(batch->value(last))});
  }
  if (partition->status.ok()) RecordDemand(partition, batch->size(), bytes);
  // Messages before the error are returned first; the next call returns the error.
  return batch->empty() ? partition->status : absl::OkStatus();
}

absl::Status PartitionReader::Take(Partition* partition, rd_kafka_message_t* message,
                                   MessageBatch* batch) {
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR ||
      message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    const int64_t offset = message->offset;
    const bool end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    const absl::Status status = CheckOffset(partition->name, offset, partition->next);
    if (status.ok()) {
      partition->next = end ? offset : offset + 1;
      partition->at_end = end;
      if (end) {
        rd_kafka_message_destroy(message);
      } else {
        batch->messages_.push_back(message);
      }
      return absl::OkStatus();
    }
    rd_kafka_message_destroy(message);
    return status;
  }
  const absl::Status status = Fail(partition, *message);
  rd_kafka_message_destroy(message);
  return status;
}

absl::Status PartitionReader::Fail(Partition* partition, const rd_kafka_message_t& message) {
  const char* const text = rd_kafka_message_errstr(&message);
  const absl::Status status = KafkaError(
      absl::StrCat("cannot read ", partition->name.ToString(), " from offset ", partition->next),
      message.err, text == nullptr ? "" : text);
  switch (status.code()) {
    case absl::StatusCode::kOutOfRange:
      return FindLost(partition);
    case absl::StatusCode::kUnavailable:
      // librdkafka keeps trying. If that lasts too long, the watch reports it.
      return absl::OkStatus();
    default:
      return status;
  }
}

absl::Status PartitionReader::FindLost(Partition* partition) {
  int64_t earliest = -1;
  int64_t latest = -1;
  const rd_kafka_resp_err_t error =
      rd_kafka_query_watermark_offsets(client_->get(), partition->name.topic.c_str(),
                                       partition->name.partition, &earliest, &latest, kFindLostMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return KafkaError(
        absl::StrCat("the broker refused offset ", partition->next, " of ",
                     partition->name.ToString(), ", and could not be asked which offsets it has"),
        error);
  }
  const absl::Status refused =
      OffsetRefused(partition->name, partition->next, {earliest, latest}, &partition->lost);
  // UNAVAILABLE may also mean that the topic was made anew: between the broker's two answers the
  // new messages may have reached this offset.
  if (absl::IsUnavailable(refused)) RETURN_IF_ERROR(guard_->LookNow(partition->index));
  return refused;
}

void PartitionReader::RecordDemand(Partition* partition, size_t messages, size_t bytes) {
  double& mean = partition->mean_bytes;
  if (messages > 0) mean += (static_cast<double>(bytes) / static_cast<double>(messages) - mean) / 8;
  // At the end of the partition there is nothing to fetch, and the broker answers by itself when a
  // message comes.
  if (partition->at_end) return;
  const double queued = mean * static_cast<double>(rd_kafka_queue_length(partition->queue.get()));
  if (queued < static_cast<double>(partition->queue_bytes) / 2) watch_->NoteLow();
}

bool PartitionReader::Wait(absl::Span<const size_t> indices, absl::Duration limit) {
  const int64_t deadline_ms = MonotonicMs() + absl::ToInt64Milliseconds(limit);
  for (;;) {
    uint64_t seen;
    {
      MutexLock lock(&mutex_);
      if (stopped_) return false;
      seen = arrivals_;
    }
    for (const size_t index : indices) {
      const Partition& partition = *partitions_[index];
      if (!partition.status.ok() || watch_->missing(index) ||
          (guard_->any_changed() && !guard_->status(index).ok()) ||
          (!guard_->awaits_look(index) && rd_kafka_queue_length(partition.queue.get()) > 0)) {
        return true;
      }
    }
    if (watch_->failed()) return true;
    const int64_t left_ms = deadline_ms - MonotonicMs();
    if (left_ms <= 0) return false;
    MutexLock lock(&mutex_);
    // If a message has arrived since the check above, the count has changed.
    if (arrivals_ == seen && !stopped_) {
      arrived_.WaitFor(&mutex_, std::min(left_ms, kLookAgainMs));
    }
  }
}

void PartitionReader::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
  }
  arrived_.NotifyAll();
}

}  // namespace satrap
