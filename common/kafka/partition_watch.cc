#include "common/kafka/partition_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/thread/clock.h"

namespace satrap {

PartitionWatch::PartitionWatch(KafkaClient* client, std::vector<KafkaPartition> partitions,
                               double broker_wait_seconds, Logger logger,
                               std::shared_ptr<BrokerOutage> outage, PartitionGuard* guard,
                               std::function<void()> wake)
    : client_(client),
      partitions_(std::move(partitions)),
      wait_ms_(static_cast<int64_t>(broker_wait_seconds * 1000)),
      logger_(std::move(logger)),
      outage_(std::move(outage)),
      guard_(guard),
      wake_(std::move(wake)),
      ends_(new std::atomic<int64_t>[partitions_.size()]),
      missing_(new std::atomic<bool>[partitions_.size()]),
      last_answer_ms_(MonotonicMs()) {
  for (size_t i = 0; i < partitions_.size(); ++i) {
    ends_[i] = -1;
    missing_[i] = false;
  }
  missing_since_ms_.resize(partitions_.size());
  thread_ = std::thread([this] { Run(); });
}

PartitionWatch::~PartitionWatch() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
  if (silent_) outage_->End();
}

absl::Status PartitionWatch::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

void PartitionWatch::WakeUp() {
  // The lock orders this after the check that the thread makes before it sleeps.
  { MutexLock lock(&mutex_); }
  changed_.NotifyAll();
}

void PartitionWatch::Run() {
  while (Await()) {
    client_->Poll(0);
    if (Query()) {
      NoteAnswer();
    } else {
      NoteSilence();
    }
  }
}

bool PartitionWatch::Await() {
  MutexLock lock(&mutex_);
  for (;;) {
    if (ending_) return false;
    const int pause_ms = low_.load(std::memory_order_relaxed) ? kLowMs : kIdleMs;
    const int64_t left_ms = last_query_ms_ + pause_ms - MonotonicMs();
    if (left_ms <= 0 || last_query_ms_ == 0) break;
    changed_.WaitFor(&mutex_, left_ms);
  }
  // A queue that runs low from now on needs another query.
  low_.store(false, std::memory_order_relaxed);
  last_query_ms_ = MonotonicMs();
  return true;
}

bool PartitionWatch::Query() {
  queries_.fetch_add(1, std::memory_order_relaxed);
  TopicPartitions list(partitions_.size());
  for (const KafkaPartition& partition : partitions_) list.Add(partition, RD_KAFKA_OFFSET_END);
  const rd_kafka_resp_err_t error =
      rd_kafka_offsets_for_times(client_->get(), list.get(), kQueryMs);
  bool answered = error == RD_KAFKA_RESP_ERR_NO_ERROR;
  for (size_t i = 0; i < list.size(); ++i) {
    const rd_kafka_resp_err_t own = list[i].err;
    if (own == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
        own == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION || own == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC) {
      // The broker has answered, even if only that there is no such partition.
      answered = true;
      NoteMissing(i);
      continue;
    }
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR && own == RD_KAFKA_RESP_ERR_NO_ERROR &&
        list[i].offset >= 0) {
      ends_[i].store(list[i].offset, std::memory_order_relaxed);
      guard_->NoteEnd(i, list[i].offset);
      missing_since_ms_[i] = 0;
    }
    // Without a leader the partition cannot be read, though other brokers are there.
    if (own == RD_KAFKA_RESP_ERR__TIMED_OUT || own == RD_KAFKA_RESP_ERR__TRANSPORT ||
        own == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE) {
      return false;
    }
  }
  return answered;
}

void PartitionWatch::NoteMissing(size_t index) {
  guard_->NoteMissing(index);
  const int64_t now_ms = MonotonicMs();
  if (missing_since_ms_[index] == 0) missing_since_ms_[index] = now_ms;
  // A broker that has just started may not know every topic yet.
  if (now_ms - missing_since_ms_[index] < kMissingMs || missing_[index]) return;
  missing_[index].store(true, std::memory_order_release);
  wake_();
}

void PartitionWatch::NoteAnswer() {
  const int64_t now_ms = MonotonicMs();
  client_->NoteAnswer();
  if (std::exchange(silent_, false) && outage_->End()) {
    logger_.Info("the Kafka broker answers again",
                 {{"away", absl::FormatDuration(absl::Milliseconds(now_ms - last_answer_ms_))}});
  }
  last_answer_ms_ = now_ms;
}

void PartitionWatch::NoteSilence() {
  const int64_t silent_ms = MonotonicMs() - last_answer_ms_;
  client_->Poll(0);
  if (silent_ms >= kGoneMs && !std::exchange(silent_, true) && outage_->Begin()) {
    const std::string limit = absl::FormatDuration(absl::Milliseconds(wait_ms_));
    logger_.Warning("no Kafka broker answers; the run waits for it",
                    {{"brokers", client_->brokers()},
                     {"reason", client_->trouble().reason},
                     {"broker_wait", limit}});
  }
  if (silent_ms < wait_ms_ || failed_) return;
  {
    MutexLock lock(&mutex_);
    status_ = client_->Unreachable(absl::StrCat(
        "for ", absl::FormatDuration(absl::Milliseconds(silent_ms)), " (broker_wait_seconds)"));
  }
  failed_.store(true, std::memory_order_release);
  wake_();
}

}  // namespace satrap
