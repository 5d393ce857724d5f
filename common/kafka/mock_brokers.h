// Brokers inside the test's process: librdkafka's own, which are there at once, need no Java, and
// can be told to be down or to refuse. tests/kafka has a real broker.
//
// Not thread-safe.

#ifndef SATRAP_COMMON_KAFKA_MOCK_BROKERS_H_
#define SATRAP_COMMON_KAFKA_MOCK_BROKERS_H_

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
  // Brokers 0 to `count` - 1.
  explicit MockBrokers(int count);
  ~MockBrokers();

  KafkaConfig Config() const;
  // Partition p of the topic is led by broker p % count.
  void MakeTopic(const std::string& topic, int partitions);
  // Writes messages to one partition, one after another, and waits until they are there.
  void Produce(const KafkaPartition& partition, const std::vector<std::string>& values);
  void TakeDown(int broker);
  void BringUp(int broker);
  // The next `count` requests for offsets are refused, as by a leader that was just elected.
  void RefuseOffsets(int count);

 private:
  const int count_;
  std::unique_ptr<KafkaClient> owner_;
  rd_kafka_mock_cluster_s* cluster_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_MOCK_BROKERS_H_
