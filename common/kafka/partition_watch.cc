#include "common/kafka/partition_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/kafka/partition_offsets.h"
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
  // Without the lock a change could come between the thread's check and its sleep, and the thread
  // would sleep on.
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
  // If a queue runs low after this point, the query that now follows is not enough, and another one
  // is needed.
  low_.store(false, std::memory_order_relaxed);
  last_query_ms_ = MonotonicMs();
  return true;
}

bool PartitionWatch::is_ending() const {
  MutexLock lock(&mutex_);
  return ending_;
}

bool PartitionWatch::Query() {
  const std::vector<PartitionOffset> answers =
      AskOffsets(client_, partitions_, RD_KAFKA_OFFSET_END, [this] { return is_ending(); });
  bool answered = true;
  for (size_t i = 0; i < answers.size(); ++i) {
    const rd_kafka_resp_err_t error = answers[i].error;
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      ends_[i].store(answers[i].offset, std::memory_order_relaxed);
      guard_->NoteEnd(i, answers[i].offset);
      missing_since_ms_[i] = 0;
      continue;
    }
    // The two errors below are answers, so the broker is there. If the login has no right to read a
    // topic, the reader reports that.
    const absl::Status status = KafkaError("cannot ask for the end of a partition", error);
    if (absl::IsNotFound(status)) {
      NoteMissing(i);
    } else if (!absl::IsPermissionDenied(status)) {
      // A partition without a leader cannot be read, even if the brokers are reachable.
      answered = false;
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
    logger_.Warning("no Kafka broker answers; the run waits until one does",
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
