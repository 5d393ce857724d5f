// The thread with which a PartitionReader asks the broker for the ends of its partitions. The
// answers show the lag and whether the broker is there, and they keep librdkafka's thread awake
// (partition_reader.h).
//
// Thread-safe. The destructor waits for a query in progress, at most kPartitionQueryMs.

#ifndef SATRAP_COMMON_KAFKA_PARTITION_WATCH_H_
#define SATRAP_COMMON_KAFKA_PARTITION_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/kafka/broker_outage.h"
#include "common/kafka/client.h"
#include "common/kafka/partition.h"
#include "common/kafka/partition_guard.h"
#include "common/log/log.h"
#include "common/thread/mutex.h"

namespace satrap {

class PartitionWatch {
 public:
  static constexpr int kIdleMs = 1000;
  static constexpr int kLowMs = 20;
  // A shorter silence of a broker is not worth a warning.
  static constexpr int kGoneMs = 2000;

  // How long brokers must report that a partition does not exist before it counts as deleted.
  static constexpr int kMissingMs = 10000;

  // Asks through `client`, which must outlive this object. `wake` is called when status() has
  // become an error or a partition is missing. Watches that share `outage` warn only once about an
  // unreachable broker. `guard` receives what the brokers report about partitions, and must outlive
  // this object, too.
  PartitionWatch(KafkaClient* client, std::vector<KafkaPartition> partitions,
                 double broker_wait_seconds, Logger logger, std::shared_ptr<BrokerOutage> outage,
                 PartitionGuard* guard, std::function<void()> wake);
  ~PartitionWatch();

  // Call when a queue that is being read runs low. The watch then asks the broker soon, in case
  // librdkafka has not noticed that the queue runs low.
  void NoteLow() {
    // Cheap enough for every batch, because the thread is woken only once for each query.
    if (!low_.exchange(true, std::memory_order_relaxed)) WakeUp();
  }
  int64_t end_offset(size_t index) const { return ends_[index].load(std::memory_order_relaxed); }
  // Whether the brokers say that this partition does not exist. Stays true.
  bool missing(size_t index) const { return missing_[index].load(std::memory_order_acquire); }
  // OK, or UNAVAILABLE once the broker has been unreachable for broker_wait_seconds. Once there is
  // an error, it stays.
  absl::Status status() const;
  bool failed() const { return failed_.load(std::memory_order_acquire); }

 private:
  void WakeUp();
  void Run();
  // Waits until the next query is due. Returns false if the watch is being destroyed.
  bool Await();
  // Asks for the ends of all partitions. False if a broker that is needed did not answer.
  bool Query();
  bool is_ending() const;
  void NoteMissing(size_t index);
  void NoteAnswer();
  void NoteSilence();

  KafkaClient* const client_;
  const std::vector<KafkaPartition> partitions_;
  const int64_t wait_ms_;
  const Logger logger_;
  const std::shared_ptr<BrokerOutage> outage_;
  PartitionGuard* const guard_;
  const std::function<void()> wake_;
  std::unique_ptr<std::atomic<int64_t>[]> ends_;
  std::unique_ptr<std::atomic<bool>[]> missing_;
  std::atomic<bool> low_{false};
  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  CondVar changed_;
  bool ending_ GUARDED_BY(mutex_) = false;
  absl::Status status_ GUARDED_BY(mutex_);
  // Only the thread uses these.
  int64_t last_query_ms_ = 0;
  int64_t last_answer_ms_;
  bool silent_ = false;                    // true while `outage_` counts this watch
  std::vector<int64_t> missing_since_ms_;  // 0: the partition exists
  std::thread thread_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_PARTITION_WATCH_H_
