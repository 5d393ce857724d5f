#include "data_loader/kafka/topic_progress.h"

#include <algorithm>

#include "common/base/check.h"

namespace satrap {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
// A partition without new records still counts for the watermark for at least this long.
constexpr int64_t kLeastIdleMs = 10000;

bool IsCaughtUp(uint64_t next_offset, const absl::optional<uint64_t>& end_offset) {
  return end_offset.has_value() && *end_offset <= next_offset;
}

}  // namespace

TopicProgress::TopicProgress(const KafkaConfig& kafka)
    : idle_ms_(std::max<int64_t>(kafka.max_wait_ms(), kLeastIdleMs)),
      allowed_lateness_ms_(kafka.allowed_lateness_ms()) {}

void TopicProgress::AddPartition(uint32_t split, uint64_t offset) {
  MutexLock lock(&mutex_);
  partitions_[split].next_offset = offset;
  partitions_[split].idle = false;
}

size_t TopicProgress::partitions() const {
  MutexLock lock(&mutex_);
  return partitions_.size();
}

void TopicProgress::Note(uint32_t split, const News& news, int64_t now_ms) {
  MutexLock lock(&mutex_);
  const auto found = partitions_.find(split);
  CHECK(found != partitions_.end()) << "split " << split;
  Partition& partition = found->second;
  // Since the end was last reported, the messages up to it may have been put into parts.
  if (IsCaughtUp(partition.next_offset, partition.end_offset)) {
    partition.caught_up_ms = partition.noted_ms;
  }
  if (news.end_offset >= 0) {
    partition.end_offset = static_cast<uint64_t>(news.end_offset);
    partition.noted_ms = now_ms;
  }
  if (IsCaughtUp(partition.next_offset, partition.end_offset)) partition.caught_up_ms = now_ms;
  if (news.newest_ms >= 0) partition.newest_ms = news.newest_ms;
  if (news.records == 0) {
    partition.idle = news.at_end && now_ms - partition.record_at_ms > idle_ms_;
    return;
  }
  partition.idle = false;
  partition.latest_ms = std::max(partition.latest_ms.value_or(kNever), news.latest_ms);
  partition.record_at_ms = now_ms;
  late_ += news.late;
}

void TopicProgress::NoteFinished(uint32_t split) {
  MutexLock lock(&mutex_);
  const auto found = partitions_.find(split);
  if (found != partitions_.end()) found->second.idle = true;
}

void TopicProgress::NoteCut(uint32_t split, uint64_t offset) {
  MutexLock lock(&mutex_);
  const auto found = partitions_.find(split);
  if (found == partitions_.end()) return;
  found->second.next_offset = std::max(found->second.next_offset, offset);
}

void TopicProgress::AddLost(uint64_t messages) {
  MutexLock lock(&mutex_);
  lost_ += messages;
}

uint64_t TopicProgress::lost() const {
  MutexLock lock(&mutex_);
  return lost_;
}

void TopicProgress::AddOpenBlocks(int64_t blocks) {
  MutexLock lock(&mutex_);
  open_blocks_ += blocks;
}

absl::optional<int64_t> TopicProgress::Watermark() const {
  absl::optional<int64_t> least;
  for (const auto& [split, partition] : partitions_) {
    if (!partition.latest_ms.has_value() || partition.idle) continue;
    least = std::min(least.value_or(*partition.latest_ms), *partition.latest_ms);
  }
  return least;
}

int64_t TopicProgress::LateBelow() const {
  MutexLock lock(&mutex_);
  const absl::optional<int64_t> watermark = Watermark();
  if (!watermark.has_value() || *watermark < kNever + allowed_lateness_ms_) return kNever;
  return *watermark - allowed_lateness_ms_;
}

absl::optional<int64_t> TopicProgress::WaitsSince(const Partition& partition, int64_t now_ms,
                                                  int64_t wall_ms) {
  absl::optional<int64_t> since = partition.newest_ms;
  if (partition.caught_up_ms.has_value()) {
    const int64_t caught_up = wall_ms - (now_ms - *partition.caught_up_ms);
    since = std::max(since.value_or(caught_up), caught_up);
  }
  return since;
}

void TopicProgress::Report(int64_t now_ms, int64_t wall_ms, LoaderProgress* progress) const {
  MutexLock lock(&mutex_);
  for (const auto& [split, partition] : partitions_) {
    PartitionProgress* const to = progress->add_partitions();
    to->set_split(split);
    to->set_next_offset(partition.next_offset);
    if (partition.end_offset.has_value()) to->set_end_offset(*partition.end_offset);
    if (partition.latest_ms.has_value()) to->set_latest_time_ms(*partition.latest_ms);
    const absl::optional<int64_t> since = WaitsSince(partition, now_ms, wall_ms);
    if (since.has_value()) to->set_next_time_ms(*since);
  }
  progress->set_late_records(late_);
  progress->set_lost_messages(lost_);
  const absl::optional<int64_t> watermark = Watermark();
  if (watermark.has_value()) progress->set_watermark_ms(*watermark);
}

TopicProgress::Lag TopicProgress::LagAt(int64_t now_ms, int64_t wall_ms) const {
  MutexLock lock(&mutex_);
  Lag lag;
  lag.open_blocks = open_blocks_;
  for (const auto& [split, partition] : partitions_) {
    if (!partition.end_offset.has_value() || *partition.end_offset <= partition.next_offset) {
      continue;
    }
    lag.messages += *partition.end_offset - partition.next_offset;
    const absl::optional<int64_t> since = WaitsSince(partition, now_ms, wall_ms);
    if (!since.has_value()) continue;
    const double age = static_cast<double>(wall_ms - *since) / 1000;
    lag.seconds = std::max(lag.seconds, age);
  }
  return lag;
}

}  // namespace satrap
