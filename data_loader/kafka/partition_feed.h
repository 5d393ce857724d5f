// A PartitionFeed has the topic partitions that one source of a loader reads: those that it begins
// with, and those that it receives while the run trains. Batch makers divide them by their
// positions in the feed, so that no partition is read twice.
//
// Thread-safe.

#ifndef SATRAP_DATA_LOADER_KAFKA_PARTITION_FEED_H_
#define SATRAP_DATA_LOADER_KAFKA_PARTITION_FEED_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/thread/mutex.h"
#include "proto/position.pb.h"

namespace satrap {

// A topic partition as split number `split` of its stream.
struct TopicSplit {
  uint32_t split = 0;
  TopicPartition partition;

  bool has_end() const { return partition.has_end(); }
};

class PartitionFeed {
 public:
  void Add(TopicSplit split) {
    {
      MutexLock lock(&mutex_);
      splits_.push_back(std::move(split));
    }
    grown_.NotifyAll();
  }

  // The partitions of maker number `maker` of `makers`, in the order in which they were added,
  // without the first `n`. A maker reads the positions p with p mod makers == maker.
  std::vector<TopicSplit> From(size_t n, size_t maker, size_t makers) const {
    MutexLock lock(&mutex_);
    std::vector<TopicSplit> splits;
    for (size_t p = n * makers + maker; p < splits_.size(); p += makers) {
      splits.push_back(splits_[p]);
    }
    return splits;
  }

  // Waits, for at most `limit`, until the feed has more than `size` partitions. The partitions of
  // all makers count.
  void WaitForMore(size_t size, absl::Duration limit) {
    MutexLock lock(&mutex_);
    if (splits_.size() <= size) grown_.WaitFor(&mutex_, absl::ToInt64Milliseconds(limit));
  }
  size_t size() const {
    MutexLock lock(&mutex_);
    return splits_.size();
  }

 private:
  mutable Mutex mutex_;
  CondVar grown_;
  std::vector<TopicSplit> splits_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_PARTITION_FEED_H_
