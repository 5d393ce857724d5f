#include "deploy/coordinator/topics/topic_resolution.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/config/data_streams.h"
#include "common/kafka/settings.h"

namespace satrap {
namespace {

using Offsets = std::vector<int64_t>;

KafkaPartition PartitionOf(const TopicPartition& partition) {
  return {partition.topic(), partition.partition()};
}

std::string Names(absl::Span<const KafkaPartition> partitions) {
  return absl::StrJoin(partitions, ", ", [](std::string* out, const KafkaPartition& partition) {
    absl::StrAppend(out, partition.ToString());
  });
}

// The state of ResolveTopics: the stream, and what the cluster has answered so far.
struct Found {
  const TopicInput& stream;
  const int64_t now_ms;
  const std::vector<KafkaPartition> partitions;
  std::vector<KafkaOffsetRange> ranges = {};
};

Offsets Earliest(const Found& found) {
  Offsets offsets;
  for (const KafkaOffsetRange& range : found.ranges) offsets.push_back(range.earliest);
  return offsets;
}

Offsets Latest(const Found& found) {
  Offsets offsets;
  for (const KafkaOffsetRange& range : found.ranges) offsets.push_back(range.latest);
  return offsets;
}

// The offsets that the job lists, sorted like the partitions.
absl::StatusOr<Offsets> Listed(const google::protobuf::RepeatedPtrField<KafkaOffset>& list,
                               const Found& found, const std::string& path) {
  std::map<KafkaPartition, int64_t> offset_of;
  for (const KafkaOffset& offset : list) {
    const KafkaPartition partition = {offset.topic(), offset.partition()};
    if (!offset_of.emplace(partition, offset.offset()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": names ", partition.ToString(), " twice"));
    }
    if (!std::binary_search(found.partitions.begin(), found.partitions.end(), partition)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": there is no ", partition.ToString(),
                                                     " among the partitions of the topics, ",
                                                     Names(found.partitions)));
    }
  }
  Offsets offsets;
  for (const KafkaPartition& partition : found.partitions) {
    const auto offset = offset_of.find(partition);
    if (offset == offset_of.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": names no offset of ", partition.ToString(), "; give one for each partition"));
    }
    offsets.push_back(offset->second);
  }
  return offsets;
}

absl::StatusOr<Offsets> AtTime(const std::string& text, const Found& found, const std::string& path,
                               TopicSource* source) {
  const absl::StatusOr<int64_t> time_ms = ParseKafkaTime(text);
  if (!time_ms.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", time_ms.status().message()));
  }
  // For a time in the future the broker would return the latest offset, which is not what the job
  // wants.
  if (*time_ms > found.now_ms) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": ", text, " is yet to come. Times become offsets when the run begins, so give one ",
        "that has passed, or offsets"));
  }
  return source->OffsetsAt(found.stream.config, found.partitions, *time_ms);
}

// Returns one start for each partition, and sets found->ranges. If the cluster must be asked for
// the starts, it is asked for them before the ranges. The group and the writers continue meanwhile,
// so a start that was asked for later could lie after its range, which is an error.
absl::StatusOr<Offsets> FindStarts(Found* found, TopicSource* source) {
  const TopicInput& stream = found->stream;
  const KafkaStart& start = stream.config.start();
  const std::string path = stream.path + ".start";
  absl::optional<Offsets> at_time;
  std::vector<absl::optional<int64_t>> committed(found->partitions.size());
  if (start.has_time()) {
    ASSIGN_OR_RETURN(at_time, AtTime(start.time(), *found, path + ".time", source));
  } else if (start.at() == KafkaStart::GROUP) {
    ASSIGN_OR_RETURN(committed, source->Committed(stream.config, found->partitions));
  }
  ASSIGN_OR_RETURN(found->ranges, source->Ranges(stream.config, found->partitions));
  if (start.offsets_size() > 0) return Listed(start.offsets(), *found, path + ".offsets");
  if (at_time.has_value()) return *std::move(at_time);
  if (start.at() == KafkaStart::LATEST) return Latest(*found);
  Offsets offsets = Earliest(*found);
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = committed[i].value_or(offsets[i]);
  return offsets;
}

// The reason why the stream must not wait for messages that are not written yet; null if it may
// wait.
const char* WhyNotWait(const JobConfig& job, const TopicInput& stream) {
  if (stream.stream != TRAIN_STREAM) {
    return "an evaluation must not wait for records that are not written yet";
  }
  if (job.reproducible()) {
    return "a reproducible run must not wait for records that are not written yet";
  }
  if (job.mode() == JobConfig::SYNC && stream.config.max_wait_ms() == 0) {
    return "in mode SYNC with max_wait_ms 0, a lane that waits would delay cuts and stops";
  }
  return nullptr;
}

// Returns one end for each partition. REQUIRES: the stream ends
absl::StatusOr<Offsets> EndsOf(const JobConfig& job, const Found& found, TopicSource* source) {
  const KafkaEnd& end = found.stream.config.end();
  const std::string path = found.stream.path + ".end";
  if (end.has_time()) return AtTime(end.time(), found, path + ".time", source);
  if (end.offsets_size() == 0) return Latest(found);
  ASSIGN_OR_RETURN(Offsets offsets, Listed(end.offsets(), found, path + ".offsets"));
  const char* const why_not = WhyNotWait(job, found.stream);
  for (size_t i = 0; i < offsets.size() && why_not != nullptr; ++i) {
    if (offsets[i] <= found.ranges[i].latest) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ".offsets: ", why_not, ", but ", found.partitions[i].ToString(),
                     " ends at ", found.ranges[i].latest, ", before offset ", offsets[i]));
  }
  return offsets;
}

// Checks the start of partition i. If the start has expired and the job allows it, moves it to the
// earliest offset.
absl::Status FitStart(const Found& found, size_t i, int64_t* start,
                      std::vector<std::string>* warnings) {
  const KafkaOffsetRange& range = found.ranges[i];
  const std::string wanted = absl::StrCat("offset ", *start, " of ", found.partitions[i].ToString(),
                                          " was to be read next, but ");
  if (*start > range.latest) {
    return absl::OutOfRangeError(
        absl::StrCat(wanted, "the partition ends at ", range.latest,
                     ": its log was lost, the topic was made anew, or the offset is wrong"));
  }
  if (*start >= range.earliest) return absl::OkStatus();
  const std::string expired =
      absl::StrCat(wanted, "the first one that the broker still has is ", range.earliest);
  if (found.stream.config.on_lost_offsets() != KafkaConfig::SKIP) {
    return absl::OutOfRangeError(absl::StrCat(
        expired, ": retention has removed the messages before it. Choose another `start`, or ",
        "on_lost_offsets: SKIP"));
  }
  warnings->push_back(absl::StrCat(expired, ": the run begins there (on_lost_offsets: SKIP)"));
  *start = range.earliest;
  return absl::OkStatus();
}

absl::Status CheckLanes(const JobConfig& job, const Found& found) {
  const size_t count = found.partitions.size();
  if (found.stream.stream != TRAIN_STREAM || job.mode() != JobConfig::SYNC ||
      count >= static_cast<size_t>(job.lanes())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "lanes: must be at most the number of partitions, because in mode SYNC each lane reads ",
      "partitions of its own; there are ", count, " (", Names(found.partitions), "), got ",
      job.lanes()));
}

// All partitions that the stream reads, sorted: the partitions of the topics that it names and of
// the topics that match its pattern, except topics for dead letters.
absl::StatusOr<std::vector<KafkaPartition>> FindPartitions(const TopicInput& stream,
                                                           TopicSource* source) {
  ASSIGN_OR_RETURN(std::vector<KafkaPartition> partitions, source->Partitions(stream.config));
  const auto& named = stream.config.topics();
  const auto& dead = stream.dead_letter_topics;
  partitions.erase(
      std::remove_if(partitions.begin(), partitions.end(),
                     [&](const KafkaPartition& partition) {
                       return std::count(dead.begin(), dead.end(), partition.topic) > 0 &&
                              std::count(named.begin(), named.end(), partition.topic) == 0;
                     }),
      partitions.end());
  if (!partitions.empty()) return partitions;
  return absl::NotFoundError(absl::StrCat(stream.path,
                                          ".topic_pattern: ", stream.config.topic_pattern(),
                                          " matches only topics that take dead letters"));
}

// Without this check a typing error would be noticed only at the first bad record, perhaps after
// days.
absl::Status CheckDeadLetterTopic(const TopicInput& stream, TopicSource* source) {
  if (stream.config.dead_letter_topic().empty()) return absl::OkStatus();
  KafkaConfig config = stream.config;
  config.clear_topics();
  config.clear_topic_pattern();
  config.add_topics(stream.config.dead_letter_topic());
  const absl::Status status = source->Partitions(config).status();
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(absl::StrCat(stream.path, ".dead_letter_topic: ", status.message()));
}

}  // namespace

std::vector<TopicInput> TopicInputsOf(const JobConfig& job) {
  std::vector<std::string> dead_letter_topics;
  for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
    const KafkaConfig* const topics = TopicsOf(job.data(), stream);
    if (topics == nullptr || topics->dead_letter_topic().empty()) continue;
    dead_letter_topics.push_back(topics->dead_letter_topic());
  }
  std::vector<TopicInput> streams;
  for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
    if (job.action() != JobConfig::TRAIN && stream != TEST_STREAM) continue;
    const KafkaConfig* const topics = TopicsOf(job.data(), stream);
    // Even in a job with topics, `predict` and `evaluate` may name files for a stream.
    if (topics == nullptr || !FilesOf(job.data(), stream).empty()) continue;
    streams.push_back({stream, TopicsPath(stream), *topics, dead_letter_topics});
  }
  return streams;
}

bool IsEndless(const TopicInput& stream) {
  if (!stream.config.has_end()) return stream.stream == TRAIN_STREAM;
  return stream.config.end().at() == KafkaEnd::NEVER;
}

absl::StatusOr<ResolvedTopics> ResolveTopics(const JobConfig& job, const TopicInput& stream,
                                             int64_t now_ms, TopicSource* source) {
  ResolvedTopics resolved;
  resolved.topics.set_stream(stream.stream);
  ASSIGN_OR_RETURN(*resolved.topics.mutable_cluster_id(), source->ClusterId(stream.config));
  ASSIGN_OR_RETURN(const std::vector<KafkaPartition> partitions, FindPartitions(stream, source));
  RETURN_IF_ERROR(CheckDeadLetterTopic(stream, source));
  Found found = {stream, now_ms, partitions};
  RETURN_IF_ERROR(CheckLanes(job, found));
  ASSIGN_OR_RETURN(Offsets starts, FindStarts(&found, source));
  const bool ends_somewhere = !IsEndless(stream);
  Offsets ends;
  if (ends_somewhere) {
    ASSIGN_OR_RETURN(ends, EndsOf(job, found, source));
  }
  for (size_t i = 0; i < partitions.size(); ++i) {
    RETURN_IF_ERROR(FitStart(found, i, &starts[i], &resolved.warnings));
    TopicPartition* partition = resolved.topics.add_partitions();
    partition->set_topic(partitions[i].topic);
    partition->set_partition(partitions[i].partition);
    partition->set_start(static_cast<uint64_t>(starts[i]));
    if (!ends_somewhere) continue;
    if (ends[i] < starts[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat(stream.path, ".end: ", partitions[i].ToString(), " would end at offset ",
                       ends[i], ", before its start at offset ", starts[i]));
    }
    partition->set_end(static_cast<uint64_t>(ends[i]));
  }
  return resolved;
}

absl::Status CheckTopics(const TopicInput& stream, const StreamTopics& known, TopicSource* source) {
  ASSIGN_OR_RETURN(const std::string id, source->ClusterId(stream.config));
  if (id != known.cluster_id()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the run reads topics of the Kafka cluster ", known.cluster_id(), ", but the cluster at ",
        absl::StrJoin(stream.config.brokers(), ","), " is ", id,
        ", where the same offsets mean other messages. Name brokers of the run's cluster in ",
        stream.path, ".brokers, or begin a new run"));
  }
  ASSIGN_OR_RETURN(const std::vector<KafkaPartition> partitions, FindPartitions(stream, source));
  std::vector<KafkaPartition> gone;
  for (const TopicPartition& partition : known.partitions()) {
    const KafkaPartition name = PartitionOf(partition);
    if (!std::binary_search(partitions.begin(), partitions.end(), name)) gone.push_back(name);
  }
  if (gone.empty()) return CheckDeadLetterTopic(stream, source);
  return absl::FailedPreconditionError(
      absl::StrCat("the run reads ", Names(gone), ", which the Kafka cluster ", id,
                   " no longer has, or which the login may not read: begin a new run"));
}

absl::StatusOr<StreamTopics> FindNewPartitions(const TopicInput& stream, const StreamTopics& known,
                                               TopicSource* source) {
  ASSIGN_OR_RETURN(const std::vector<KafkaPartition> partitions, FindPartitions(stream, source));
  std::vector<KafkaPartition> old;
  for (const TopicPartition& partition : known.partitions()) old.push_back(PartitionOf(partition));
  std::sort(old.begin(), old.end());
  std::vector<KafkaPartition> added;
  std::set_difference(partitions.begin(), partitions.end(), old.begin(), old.end(),
                      std::back_inserter(added));
  StreamTopics found;
  found.set_stream(stream.stream);
  found.set_cluster_id(known.cluster_id());
  if (added.empty()) return found;
  ASSIGN_OR_RETURN(const std::vector<KafkaOffsetRange> ranges,
                   source->Ranges(stream.config, added));
  for (size_t i = 0; i < added.size(); ++i) {
    TopicPartition* partition = found.add_partitions();
    partition->set_topic(added[i].topic);
    partition->set_partition(added[i].partition);
    partition->set_start(static_cast<uint64_t>(ranges[i].earliest));
  }
  return found;
}

absl::StatusOr<FoundTopics> FindTopics(const JobConfig& job, const std::vector<StreamTopics>& known,
                                       int64_t now_ms, TopicSource* source) {
  FoundTopics found;
  for (const TopicInput& stream : TopicInputsOf(job)) {
    const auto of_run = std::find_if(known.begin(), known.end(), [&stream](const auto& topics) {
      return topics.stream() == static_cast<uint32_t>(stream.stream);
    });
    if (of_run != known.end()) {
      RETURN_IF_ERROR(CheckTopics(stream, *of_run, source));
      continue;
    }
    ASSIGN_OR_RETURN(ResolvedTopics resolved, ResolveTopics(job, stream, now_ms, source));
    *found.added.add_topics() = std::move(resolved.topics);
    found.warnings.insert(found.warnings.end(), resolved.warnings.begin(), resolved.warnings.end());
  }
  return found;
}

std::string PartitionNames(const StreamTopics& topics) {
  std::vector<KafkaPartition> partitions;
  for (const TopicPartition& partition : topics.partitions()) {
    partitions.push_back(PartitionOf(partition));
  }
  return Names(partitions);
}

}  // namespace satrap
