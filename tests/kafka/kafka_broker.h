// A KafkaBroker is a real broker for a test: a child process that dies with the test, on ports that
// were free, with its data in a temporary folder.
//
// It needs what `./setup kafka` installs. If that is missing, Start prints one line that says so
// and returns null, and the test is skipped. If SATRAP_REQUIRE_KAFKA is set, as in CI, the test
// fails instead:
//
//     static void SetUpTestSuite() { broker_ = KafkaBroker::Start(); }
//     void SetUp() override { if (broker_ == nullptr) GTEST_SKIP(); }
//
// The script tests/kafka/broker looks for the jars in the checkout: in a test's runfiles the script
// is a link into the checkout. Not thread-safe; the thread that starts a broker must outlive it.

#ifndef SATRAP_TESTS_KAFKA_KAFKA_BROKER_H_
#define SATRAP_TESTS_KAFKA_KAFKA_BROKER_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/kafka/admin.h"
#include "common/kafka/partition.h"
#include "proto/kafka.pb.h"

namespace satrap {

class KafkaBroker {
 public:
  // Starts a broker and waits until it answers. `properties` ("NAME=VALUE") override the broker's
  // settings. If they change its listeners, `address` is the address of the listener without login
  // and TLS.
  static std::unique_ptr<KafkaBroker> Start(const std::vector<std::string>& properties = {},
                                            const std::string& address = "");
  // Kills the broker.
  ~KafkaBroker();

  const std::string& address() const { return address_; }  // HOST:PORT
  const std::string& dir() const { return dir_; }
  pid_t pid() const { return pid_; }
  // A configuration that reads `topic` from this broker.
  KafkaConfig Config(const std::string& topic) const;

  // Makes a topic, and returns when the broker can use it.
  void MakeTopic(const std::string& topic, int partitions,
                 const std::map<std::string, std::string>& settings = {});
  // Like MakeTopic, with a name that no other test uses. Returns the name.
  std::string NewTopic(int partitions, const std::map<std::string, std::string>& settings = {});
  KafkaAdmin& admin() { return *admin_; }
  // Writes messages to one partition, one after another, and waits for the broker.
  void Produce(const KafkaPartition& partition, const std::vector<std::string>& values);

  // Kills the broker with SIGKILL. Its data stays.
  void Kill();
  // Starts the broker again at the same address, and waits until it answers.
  void Restart();

 private:
  KafkaBroker() = default;
  // False if the script says that something is not installed.
  bool StartProcess();

  std::string dir_;
  std::vector<std::string> properties_;
  std::string address_;
  pid_t pid_ = -1;
  std::unique_ptr<KafkaAdmin> admin_;
  int topics_ = 0;
};

// Ports that are free now, all different.
std::vector<int> FreePorts(size_t count);

}  // namespace satrap

#endif  // SATRAP_TESTS_KAFKA_KAFKA_BROKER_H_
