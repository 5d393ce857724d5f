// Turns a job's topics into partitions and offsets: finds what `start` and `end` mean when the run
// begins, checks that a later generation has the same cluster, and finds partitions that were added
// since.
//
// An error's message is the one with which the run fails: it names partition and offsets, or the
// field of the job. Blocking, as TopicSource. Functions of their arguments and of the cluster.

#ifndef SATRAP_DEPLOY_COORDINATOR_TOPICS_TOPIC_RESOLUTION_H_
#define SATRAP_DEPLOY_COORDINATOR_TOPICS_TOPIC_RESOLUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/coordinator/topics/topic_source.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"
#include "proto/run_log.pb.h"

namespace satrap {

// A stream that a job reads from topics.
struct TopicInput {
  Stream stream = TRAIN_STREAM;
  std::string path;  // the stream's section in the job, such as "data.kafka"
  KafkaConfig config;
  // Dead-letter topics of all streams of the job: what is written there must not be read as input.
  std::vector<std::string> dead_letter_topics = {};
};
// The streams that `job` reads from topics; which these are depends on its action.
std::vector<TopicInput> TopicInputsOf(const JobConfig& job);

// Whether the stream has no end. If the job sets no end, the train stream has none (NEVER) and the
// others end AT_START.
bool IsEndless(const TopicInput& stream);

struct ResolvedTopics {
  StreamTopics topics;
  std::vector<std::string> warnings;  // offsets that have expired and are skipped
};
// The partitions that the cluster has now, with offsets. A start must lie within what the broker
// has, but with on_lost_offsets SKIP an expired one is replaced by the earliest offset. An end of
// the train stream may lie after what is written. Reading then waits for messages, which is an
// error in a reproducible run and in a run of mode SYNC without max_wait_ms. `now_ms` is the wall
// clock's: a time in the future has no offset yet. Writers may continue meanwhile: no message that
// they add is skipped.
//   OUT_OF_RANGE      a start that has expired, or lies after the partition's end
//   INVALID_ARGUMENT  a list of offsets that does not have exactly one for each partition; an end
//                     before its start; an end after what is written, if reading must not wait;
//                     a time in the future; fewer partitions of the train stream than lanes
//                     (mode SYNC)
//   NOT_FOUND         the topic for dead letters does not exist
// Other errors are those of TopicSource.
absl::StatusOr<ResolvedTopics> ResolveTopics(const JobConfig& job, const TopicInput& stream,
                                             int64_t now_ms, TopicSource* source);

// Checks that the cluster is the one from which `known` came, and still has its partitions and the
// topic for dead letters. FAILED_PRECONDITION names both clusters, or the missing partitions;
// NOT_FOUND names the topic for dead letters. Other errors are those of TopicSource.
absl::Status CheckTopics(const TopicInput& stream, const StreamTopics& known, TopicSource* source);

// The partitions that are not in `known`, starting at their first message; empty if there are none.
absl::StatusOr<StreamTopics> FindNewPartitions(const TopicInput& stream, const StreamTopics& known,
                                               TopicSource* source);

// The topics that a generation begins with. Checks the streams that the run's log has (`known`),
// and resolves the others, which become a new entry of the log.
struct FoundTopics {
  TopicsEntry added;
  std::vector<std::string> warnings;
};
absl::StatusOr<FoundTopics> FindTopics(const JobConfig& job, const std::vector<StreamTopics>& known,
                                       int64_t now_ms, TopicSource* source);

// "clicks/0, clicks/1"
std::string PartitionNames(const StreamTopics& topics);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_TOPICS_TOPIC_RESOLUTION_H_
