#include "deploy/coordinator/topics/dealt_topics.h"

#include <algorithm>

#include "absl/types/optional.h"
#include "common/base/check.h"

namespace satrap {
namespace {

// The number of messages that the loader has yet to read; nullopt if the loader has not reported an
// end offset yet.
absl::optional<uint64_t> LagOf(const TopicPartition& partition, const PartitionProgress& progress) {
  if (!progress.has_end_offset()) return absl::nullopt;
  const uint64_t end = partition.has_end() ? std::min(partition.end(), progress.end_offset())
                                           : progress.end_offset();
  return std::max(end, progress.next_offset()) - progress.next_offset();
}

void AddLag(const TopicPartition& partition, const PartitionProgress& progress, int64_t unix_ms,
            TopicsStatus* status) {
  const absl::optional<uint64_t> lag = LagOf(partition, progress);
  if (!lag.has_value()) return;
  status->set_lag_messages(status->lag_messages() + *lag);
  double seconds = 0;
  if (*lag > 0) {
    if (!progress.has_next_time_ms()) return;
    seconds = static_cast<double>(std::max<int64_t>(unix_ms - progress.next_time_ms(), 0)) * 1e-3;
  }
  status->set_lag_seconds(std::max(status->lag_seconds(), seconds));
}

void AddLoader(const LoaderProgress& loader, TopicsStatus* status) {
  status->set_late_records(status->late_records() + loader.late_records());
  status->set_dead_letters(status->dead_letters() + loader.dead_letters());
  status->set_lost_messages(status->lost_messages() + loader.lost_messages());
  if (!loader.has_watermark_ms()) return;
  status->set_watermark_ms(status->has_watermark_ms()
                               ? std::min(status->watermark_ms(), loader.watermark_ms())
                               : loader.watermark_ms());
}

}  // namespace

DealtTopics::DealtTopics(const JobConfig& job)
    : partitions_of_(static_cast<size_t>(job.data_loader().replicas())) {
  const size_t loaders = partitions_of_.size();
  const size_t lanes = job.mode() == JobConfig::SYNC ? static_cast<size_t>(job.lanes()) : loaders;
  for (size_t lane = 0; lane < lanes; ++lane) {
    first_loaders_.push_back(static_cast<uint32_t>(lane % loaders));
  }
}

void DealtTopics::Begin(const StreamTopics& train) {
  CHECK(!begun_) << "Begin was called twice";
  begun_ = true;
  train_ = train;
  begun_with_ = static_cast<size_t>(train.partitions_size());
  for (size_t j = 0; j < begun_with_; ++j) {
    loader_of_.push_back(first_loaders_[j % first_loaders_.size()]);
    ++partitions_of_[loader_of_.back()];
  }
}

void DealtTopics::Add(const StreamTopics& added) {
  for (const TopicPartition& partition : added.partitions()) {
    *train_.add_partitions() = partition;
    const auto fewest = std::min_element(partitions_of_.begin(), partitions_of_.end());
    ++*fewest;
    loader_of_.push_back(static_cast<uint32_t>(fewest - partitions_of_.begin()));
  }
}

void DealtTopics::AddTo(uint32_t known, HeartbeatAnswer* answer) const {
  for (size_t j = std::max<size_t>(known, begun_with_); j < loader_of_.size(); ++j) {
    DealtPartition* dealt = answer->add_dealt();
    dealt->set_split(static_cast<uint32_t>(j));
    dealt->set_loader(loader_of_[j]);
    *dealt->mutable_partition() = train_.partitions(static_cast<int>(j));
  }
}

void DealtTopics::AddTo(int64_t unix_ms, StatusAnswer* answer) const {
  if (!begun_) return;
  TopicsStatus* status = answer->mutable_topics();
  status->set_cluster_id(train_.cluster_id());
  for (size_t j = 0; j < loader_of_.size(); ++j) {
    TopicPartitionStatus* partition = status->add_partitions();
    *partition->mutable_partition() = train_.partitions(static_cast<int>(j));
    partition->set_loader(loader_of_[j]);
  }
  for (const RoleStatus& role : answer->roles()) {
    if (!role.has_loader()) continue;
    AddLoader(role.loader(), status);
    for (const PartitionProgress& progress : role.loader().partitions()) {
      if (progress.split() >= loader_of_.size()) continue;
      TopicPartitionStatus* partition =
          status->mutable_partitions(static_cast<int>(progress.split()));
      *partition->mutable_progress() = progress;
      AddLag(partition->partition(), progress, unix_ms, status);
    }
  }
}

std::vector<uint64_t> ConsumedOffsets(const StreamTopics& train, const RunPosition& position,
                                      const Ledger& ledger) {
  std::vector<uint64_t> offsets;
  for (int j = 0; j < train.partitions_size(); ++j) {
    const TopicPartition& partition = train.partitions(j);
    const uint32_t split = static_cast<uint32_t>(j);
    const bool done = position.epoch() > 0 || ledger.IsSplitDone(0, split);
    offsets.push_back(done && partition.has_end()
                          ? partition.end()
                          : ledger.ContiguousEnd(0, split, partition.start()));
  }
  return offsets;
}

std::vector<KafkaPlace> PlacesOf(const StreamTopics& train, const std::vector<uint64_t>& offsets) {
  std::vector<KafkaPlace> places;
  for (size_t j = 0; j < offsets.size(); ++j) {
    const TopicPartition& partition = train.partitions(static_cast<int>(j));
    places.push_back(
        {{partition.topic(), partition.partition()}, static_cast<int64_t>(offsets[j])});
  }
  return places;
}

}  // namespace satrap
