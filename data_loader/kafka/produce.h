// Writes the lines of files to a Kafka topic, for `satrap produce`, the demo and benchmarks.
//
// Thread-safe: a function of its arguments. It blocks until everything is acknowledged.

#ifndef SATRAP_DATA_LOADER_KAFKA_PRODUCE_H_
#define SATRAP_DATA_LOADER_KAFKA_PRODUCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "data_loader/kafka/message_maker.h"
#include "proto/job.pb.h"
#include "proto/kafka.pb.h"

namespace satrap {

struct ProduceOptions {
  KafkaConfig kafka;  // brokers and settings
  std::string topic;  // must exist
  int32_t partition = -1;
  std::vector<std::string> files;  // plain or compressed; read one after another
  absl::optional<JobConfig> job;   // says what a line holds
  MessageOptions message;
  double lines_per_second = 0;  // 0: as fast as the broker takes them
};

struct ProduceProgress {
  uint64_t lines = 0;     // handed to the producer
  uint64_t messages = 0;  // also handed to the producer
  double fraction = 0;    // fraction of the files' bytes that are read
};

// Returns the number of the topic's partitions. Fails within 15 s, and says why, if messages cannot
// be written to one of the partitions, for example because its own broker does not answer. Errors
// are those of KafkaCluster (common/kafka/cluster.h).
absl::StatusOr<size_t> FindTopic(const KafkaConfig& kafka, const std::string& topic);

// Writes all lines in order. In the topic, lines with equal keys keep their order, and so do all
// lines of one partition. `show` is called often, on this thread; if it returns false, nothing more
// is read, but the lines already read are still flushed. Header lines are left out if the job's
// format has them. The first error names file and line, or topic and broker; what was sent before
// it may have been written.
absl::Status Produce(const ProduceOptions& options,
                     const std::function<bool(const ProduceProgress&)>& show);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_PRODUCE_H_
