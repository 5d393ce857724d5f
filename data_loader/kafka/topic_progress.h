// A TopicProgress knows how far a loader has read the topic partitions of one stream: offsets, lag,
// times of records, and the watermark. A record is late if its time is below the watermark by more
// than allowed_lateness_ms.
//
// The watermark is the least of the partitions' latest record times. A partition that is read to
// its end and has had no new record for a while is left out, because otherwise it would stop the
// watermark for ever. A partition that only waits while others are read is not left out.
//
// Thread-safe.

#ifndef SATRAP_DATA_LOADER_KAFKA_TOPIC_PROGRESS_H_
#define SATRAP_DATA_LOADER_KAFKA_TOPIC_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>

#include "absl/types/optional.h"
#include "common/thread/mutex.h"
#include "proto/control.pb.h"
#include "proto/kafka.pb.h"

namespace satrap {

class TopicProgress {
 public:
  explicit TopicProgress(const KafkaConfig& kafka);

  // Call when the loader begins to read a partition, from `offset` on.
  void AddPartition(uint32_t split, uint64_t offset);
  size_t partitions() const;

  // What a batch maker has learned about a partition since its last call of Note.
  struct News {
    int64_t end_offset = -1;  // the partition's end; -1: not known
    bool at_end = false;      // everything below end_offset is read
    int64_t newest_ms = -1;   // the broker's time of the newest message; -1: no message
    uint64_t records = 0;
    // The latest time of these records, and the number of late ones. REQUIRES: both are set if
    // there are records
    int64_t latest_ms = std::numeric_limits<int64_t>::min();
    uint64_t late = 0;
  };
  // Adds `news` about a partition. `now_ms` comes from the same monotonic clock in all calls.
  // REQUIRES: the partition was added
  void Note(uint32_t split, const News& news, int64_t now_ms);
  // Call when a partition was read to its end, so that the watermark no longer depends on it.
  void NoteFinished(uint32_t split);
  // Call when all offsets below `offset` are in parts. Ignores partitions that were not added.
  void NoteCut(uint32_t split, uint64_t offset);
  void AddLost(uint64_t messages);
  void AddOpenBlocks(int64_t blocks);

  // The time below which a record is late. If there is no watermark, the least int64, so that no
  // record is late.
  int64_t LateBelow() const;

  // Sets partitions, late_records, lost_messages and watermark_ms. `wall_ms` counts from 1970.
  void Report(int64_t now_ms, int64_t wall_ms, LoaderProgress* progress) const;
  uint64_t lost() const;

  struct Lag {
    uint64_t messages = 0;  // offsets that are not in parts yet, of partitions whose end is known
    // For how long messages may have waited in the partition where they have waited longest. The
    // wait of a partition is the time since its newest message that was read, or since everything
    // in it was read, whichever is shorter.
    double seconds = 0;
    int64_t open_blocks = 0;  // blocks that are not yet completely in parts
  };
  Lag LagAt(int64_t now_ms, int64_t wall_ms) const;

 private:
  struct Partition {
    uint64_t next_offset = 0;
    absl::optional<uint64_t> end_offset;
    absl::optional<int64_t> newest_ms;
    absl::optional<int64_t> latest_ms;
    int64_t record_at_ms = 0;  // when the last record came
    bool idle = false;
    int64_t noted_ms = 0;                  // when end_offset was last reported
    absl::optional<int64_t> caught_up_ms;  // when nothing was left to read, most recently
  };
  absl::optional<int64_t> Watermark() const REQUIRES(mutex_);
  // The earliest time, in ms since 1970, from which a message of the partition may have been
  // waiting. Absent if nothing is known.
  static absl::optional<int64_t> WaitsSince(const Partition& partition, int64_t now_ms,
                                            int64_t wall_ms);

  const int64_t idle_ms_;
  const int64_t allowed_lateness_ms_;
  mutable Mutex mutex_;
  std::map<uint32_t, Partition> partitions_ GUARDED_BY(mutex_);  // by split
  uint64_t late_ GUARDED_BY(mutex_) = 0;
  uint64_t lost_ GUARDED_BY(mutex_) = 0;
  int64_t open_blocks_ GUARDED_BY(mutex_) = 0;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_TOPIC_PROGRESS_H_
