// A KafkaAdmin changes topics. Tests and the demo make their topics with it.
//
// Every call waits for the broker's confirmation, at most 15 s. Thread-safe.

#ifndef SATRAP_COMMON_KAFKA_ADMIN_H_
#define SATRAP_COMMON_KAFKA_ADMIN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/kafka/partition.h"
#include "proto/kafka.pb.h"

namespace satrap {

class KafkaClient;

class KafkaAdmin {
 public:
  // Connects in the background. Errors are those of ResolveKafkaSettings.
  static absl::StatusOr<std::unique_ptr<KafkaAdmin>> Create(const KafkaConfig& config);
  ~KafkaAdmin();

  // Makes a topic with `partitions` partitions of one replica each. The names of `settings` are the
  // broker's ("cleanup.policy"). ALREADY_EXISTS if the topic exists; INVALID_ARGUMENT for settings
  // that the broker refuses.
  absl::Status CreateTopic(const std::string& topic, int partitions,
                           const std::map<std::string, std::string>& settings = {});
  absl::Status DeleteTopic(const std::string& topic);
  // Adds partitions until there are `total`.
  absl::Status AddPartitions(const std::string& topic, int total);
  // Removes the messages before `place.offset`, as if retention had removed them.
  absl::Status DeleteRecords(const KafkaPlace& place);

 private:
  explicit KafkaAdmin(std::unique_ptr<KafkaClient> client);

  const std::unique_ptr<KafkaClient> client_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_ADMIN_H_
