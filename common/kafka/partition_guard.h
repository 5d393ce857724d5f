// A PartitionGuard detects that a topic was deleted and made anew while it is read. Offsets then
// begin anew, and a reader that continued at its old offset would silently miss the first messages.
//
// The guard remembers one message of each partition, its anchor: a message that was read, or one
// before the place where reading begins. From time to time, and when there is reason to doubt, it
// reads the anchor again with a client of its own. This is called a look. If the look finds the
// same value, or no message (because of retention or compaction), the topic counts as unchanged.
// After that the anchor is the last message that was read before this look, because that message is
// now known to be of the same topic. A partition without a message before the place where reading
// begins has no anchor at first. Until it has one, it counts as changed once its first offset has
// gone back to 0.
//
// A guard may begin with the anchor of an earlier reader. Then it looks at once, and again each
// second while the brokers do not answer. awaits_look() says for each partition whether the
// comparison is still to come. A partition that ends before such an anchor counts as changed, too.
// The anchors after each look can be kept for a later reader.
//
// A topic that is made anew and filled with the same messages, at the same offsets, counts as the
// same: no message is missed. A topic without new messages is not looked at again.
//
// Thread-safe. The destructor waits for a look in progress, at most as long as KafkaClient's
// destructor and one query (kPartitionQueryMs). The free functions hold the code that needs no
// broker, for tests.

#ifndef SATRAP_COMMON_KAFKA_PARTITION_GUARD_H_
#define SATRAP_COMMON_KAFKA_PARTITION_GUARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/kafka/partition.h"
#include "common/kafka/partition_look.h"
#include "common/log/log.h"
#include "common/thread/mutex.h"
#include "proto/kafka.pb.h"

namespace satrap {

// Receives, after each look, the anchors of all partitions that are known to be the same partitions
// as before. Called on the guard's thread, which it may block.
using AnchorSink =
    std::function<void(const std::vector<std::pair<KafkaPartition, PartitionAnchor>>&)>;

class PartitionGuard {
 public:
  static constexpr int64_t kFirstLookMs = 1000;
  static constexpr int64_t kPeriodMs = 10000;
  static constexpr int64_t kRetryMs = 1000;  // while a partition awaits its look
  static constexpr int64_t kLookMs = 5000;

  // `places` are the places where reading begins. `wake` is called when awaits_look() of a
  // partition has become false or its status() has become an error. `keep` may be null.
  PartitionGuard(const KafkaConfig& config, const std::vector<KafkaPlace>& places, Logger logger,
                 std::function<void()> wake, AnchorSink keep = nullptr);
  ~PartitionGuard();
  PartitionGuard(const PartitionGuard&) = delete;
  PartitionGuard& operator=(const PartitionGuard&) = delete;

  // Call this after reading from a partition. `message` is the newest message that was read from
  // it.
  void NoteRead(size_t index, const MessageMark& message);
  // Call these when the brokers report that the partition ends at `end`, or that it does not exist.
  // If the end goes back, or the partition exists again, there is reason to doubt, and the guard
  // looks at once.
  void NoteEnd(size_t index, int64_t end);
  void NoteMissing(size_t index);
  // Looks at one partition now, on the caller's thread, for up to kLookMs. Returns status().
  absl::Status LookNow(size_t index);

  // OK; FAILED_PRECONDITION once the partition has been replaced by another; or UNAVAILABLE once
  // its look has been awaited for broker_wait_seconds. The error stays.
  absl::Status status(size_t index) const;
  // Whether the guard would detect a change of the partition by now: it has an anchor, or needs
  // none.
  bool knows(size_t index) const;
  // Whether the partition has the anchor of an earlier reader and has not been compared with it
  // yet. After the comparison status() has the result. Cheap.
  bool awaits_look(size_t index) const { return awaits_[index].load(std::memory_order_acquire); }
  // Whether status() of some partition is an error. Cheap.
  bool any_changed() const { return any_changed_.load(std::memory_order_acquire); }

 private:
  struct Guarded {
    KafkaPartition name;
    int64_t start = 0;
    absl::optional<MessageMark> anchor;
    absl::optional<MessageMark> latest;  // the last message read after the anchor
    int64_t earliest = -1;               // without an anchor: its first offset in the last look
    int64_t end = -1;                    // as last reported
    int64_t looked_end = -2;             // `end` at the time of the last look with an answer
    bool is_missing = false;
    bool doubt = false;
    absl::Status status;
  };
  // What was known of a partition when the guard asked the brokers about it.
  struct Asked {
    size_t index = 0;
    absl::optional<MessageMark> anchor;  // absent: a message before the start is searched for
    absl::optional<MessageMark> latest;  // the last message read
    int64_t end = -1;
  };
  void Run();
  bool Await() REQUIRES(mutex_);
  void AddQuestion(size_t index, std::vector<Asked>* asked,
                   std::vector<PartitionQuestion>* questions) const REQUIRES(mutex_);
  void AskWhatMayHaveChanged();
  void Ask(const std::vector<Asked>& asked, const std::vector<PartitionQuestion>& questions);
  void Take(const Asked& asked, const PartitionLook& look);
  void Keep() const;
  // Whether awaits_look() of any partition is true. Sets the error of each partition whose look has
  // been awaited for too long.
  bool AnyAwaits();
  bool ending() const;

  const KafkaConfig config_;
  const Logger logger_;
  const std::function<void()> wake_;
  const AnchorSink keep_;
  const int64_t begin_ms_;
  const std::unique_ptr<std::atomic<bool>[]> awaits_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Guarded> partitions_ GUARDED_BY(mutex_);
  bool doubt_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  int64_t next_look_ms_ GUARDED_BY(mutex_);
  std::atomic<bool> any_changed_{false};
  std::thread thread_;
};

// FAILED_PRECONDITION if `look`, made from the anchor's offset on, shows that the partition is no
// longer the one in which `anchor` was read.
absl::Status CompareAnchor(const KafkaPartition& partition, const MessageMark& anchor,
                           const PartitionLook& look);

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_PARTITION_GUARD_H_
