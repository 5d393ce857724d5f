// A TopicSource for tests: an in-memory cluster that the test can change at any time.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_COORDINATOR_TOPICS_TESTING_FAKE_TOPIC_SOURCE_H_
#define SATRAP_DEPLOY_COORDINATOR_TOPICS_TESTING_FAKE_TOPIC_SOURCE_H_

#include <fnmatch.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deploy/coordinator/topics/topic_source.h"

namespace satrap {

class FakeTopicSource final : public TopicSource {
 public:
  struct Partition {
    int64_t earliest = 0;
    int64_t latest = 0;
    std::map<int64_t, int64_t> offset_at;  // by time
  };

  std::string cluster_id = "cluster-a";
  std::map<KafkaPartition, Partition> partitions;
  std::map<KafkaPartition, int64_t> committed;
  std::vector<std::vector<KafkaPlace>> commits;
  absl::Status error;         // returned by every question
  absl::Status commit_error;  // returned by commits
  // Called with the question's name after each question about offsets, so that a test can change
  // the cluster before the next question.
  std::function<void(const std::string& question)> after;

  absl::StatusOr<std::string> ClusterId(const KafkaConfig&) override {
    if (!error.ok()) return error;
    return cluster_id;
  }
  absl::StatusOr<std::vector<KafkaPartition>> Partitions(const KafkaConfig& config) override {
    if (!error.ok()) return error;
    std::vector<KafkaPartition> found;
    for (const auto& [name, partition] : partitions) {
      const bool named = std::count(config.topics().begin(), config.topics().end(), name.topic) > 0;
      if (named || fnmatch(config.topic_pattern().c_str(), name.topic.c_str(), 0) == 0) {
        found.push_back(name);
      }
    }
    for (const std::string& topic : config.topics()) {
      if (std::none_of(found.begin(), found.end(),
                       [&topic](const KafkaPartition& each) { return each.topic == topic; })) {
        return absl::NotFoundError(absl::StrCat("there is no topic ", topic));
      }
    }
    return found;
  }
  absl::StatusOr<std::vector<KafkaOffsetRange>> Ranges(
      const KafkaConfig&, absl::Span<const KafkaPartition> names) override {
    if (!error.ok()) return error;
    std::vector<KafkaOffsetRange> ranges;
    for (const KafkaPartition& name : names) {
      ranges.push_back({partitions.at(name).earliest, partitions.at(name).latest});
    }
    if (after) after("Ranges");
    return ranges;
  }
  absl::StatusOr<std::vector<int64_t>> OffsetsAt(const KafkaConfig&,
                                                 absl::Span<const KafkaPartition> names,
                                                 int64_t time_ms) override {
    if (!error.ok()) return error;
    std::vector<int64_t> offsets;
    for (const KafkaPartition& name : names) {
      const Partition& partition = partitions.at(name);
      const auto at = partition.offset_at.lower_bound(time_ms);
      offsets.push_back(at == partition.offset_at.end() ? partition.latest : at->second);
    }
    if (after) after("OffsetsAt");
    return offsets;
  }
  absl::StatusOr<std::vector<absl::optional<int64_t>>> Committed(
      const KafkaConfig&, absl::Span<const KafkaPartition> names) override {
    if (!error.ok()) return error;
    std::vector<absl::optional<int64_t>> offsets;
    for (const KafkaPartition& name : names) {
      const auto at = committed.find(name);
      offsets.push_back(at == committed.end() ? absl::nullopt
                                              : absl::optional<int64_t>(at->second));
    }
    if (after) after("Committed");
    return offsets;
  }
  absl::Status Commit(const KafkaConfig&, absl::Span<const KafkaPlace> places) override {
    if (!commit_error.ok()) return commit_error;
    commits.emplace_back(places.begin(), places.end());
    for (const KafkaPlace& place : places) committed[place.partition] = place.offset;
    return absl::OkStatus();
  }
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_TOPICS_TESTING_FAKE_TOPIC_SOURCE_H_
