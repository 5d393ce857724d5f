// The base of tests in which whole runs train from the topics of a real broker. Their job counts in
// a table of its own how often each record is trained (tests/fault/fault_fixture.h). A record is a
// line of CSV; its number is the id of the feature `record`.

#ifndef SATRAP_TESTS_KAFKA_TOPIC_RUN_FIXTURE_H_
#define SATRAP_TESTS_KAFKA_TOPIC_RUN_FIXTURE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/fault/fault_fixture.h"
#include "tests/kafka/kafka_broker.h"

namespace satrap {

// One broker serves all tests of a suite.
class TopicRunFixture : public FaultFixture {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;

  // The data holds ids as strings, and the id of a string is its hash.
  uint64_t IdOfRecord(int64_t record) const override;

  static std::string LineOf(int64_t record);
  // Writes the records [from, to), one message each, to the topic's partitions in turn.
  static void Produce(const std::string& topic, int partitions, int64_t from, int64_t to);

  // The text of a job with 2 processes of each role. `data` is the text of its DataConfig.
  static std::string JobText(const std::string& data);
  // Writes a job that reads `topic`, with a consumer group of the same name. `more` is appended to
  // the text of its KafkaConfig, and `more_of_job` to that of the job. Returns its path.
  std::string WriteTopicJob(const std::string& topic, const std::string& more,
                            const std::string& more_of_job = "");

  // The number of messages of `topic` that the run's group has committed, over all partitions:
  // those that the newest cut covers.
  static int64_t Consumed(const std::string& topic);
  // Waits until Consumed(topic) is the number of all messages that the broker has.
  bool WaitUntilConsumed(const std::string& topic, double timeout_s = 120) const;

  // The key and the header `reason` of all messages of a topic of dead letters.
  static std::vector<std::pair<std::string, std::string>> KeysAndReasons(const std::string& topic);

  static KafkaBroker* broker_;
};

}  // namespace satrap

#endif  // SATRAP_TESTS_KAFKA_TOPIC_RUN_FIXTURE_H_
