// Brokers inside the test's process: librdkafka's own mock. They start at once and need no Java. A
// test can make them unreachable or make them refuse requests. tests/kafka has a real broker.
//
// Not thread-safe.

#ifndef SATRAP_COMMON_KAFKA_TESTING_MOCK_BROKERS_H_
#define SATRAP_COMMON_KAFKA_TESTING_MOCK_BROKERS_H_

#include <memory>
#include <string>
#include <vector>

#include "common/kafka/client.h"
#include "common/kafka/partition.h"
#include "proto/kafka.pb.h"

struct rd_kafka_mock_cluster_s;

namespace satrap {

class MockBrokers {
 public:
  // Makes brokers 0 to `count` - 1.
  explicit MockBrokers(int count);
  ~MockBrokers();

  KafkaConfig Config() const;
  // Broker p % count leads partition p of the topic.
  void MakeTopic(const std::string& topic, int partitions);
  // Writes messages to one partition, one after another, and waits until they are written.
  void Produce(const KafkaPartition& partition, const std::vector<std::string>& values);
  void TakeDown(int broker);
  void BringUp(int broker);
  // Makes the brokers refuse the next `count` requests for offsets, as a newly elected leader does.
  void RefuseOffsets(int count);
  // Makes the brokers refuse the next `count` requests for offsets for lack of rights.
  void ForbidOffsets(int count);
  // Makes the broker answer the next fetch of messages that its offset is after the end, whether or
  // not it is.
  void HideMessagesOnce();

 private:
  const int count_;
  std::unique_ptr<KafkaClient> owner_;
  rd_kafka_mock_cluster_s* cluster_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_TESTING_MOCK_BROKERS_H_
