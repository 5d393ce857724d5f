// Tests an endless run in pods that trains from a topic of a real broker, with a password from a
// Secret, and is moved by a drain.

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "common/numeric/hash.h"
#include "common/thread/clock.h"
#include "gtest/gtest.h"
#include "tests/kafka/kafka_broker.h"
#include "tests/kafka/topic_run_fixture.h"
#include "tests/pods/pod_run_fixture.h"

namespace satrap {
namespace {

constexpr int kPartitions = 4;

// The parts of the fixture of topic tests that this test uses.
struct Topics : public TopicRunFixture {
  using TopicRunFixture::broker_;
  using TopicRunFixture::Consumed;
  using TopicRunFixture::JobText;
  using TopicRunFixture::Produce;
};

// $0: the broker's address for pods; $1: the topic
constexpr char kData[] = R"(kafka {
  brokers: "$0"
  topics: "$1"
  group_id: "$1"
  settings { name: "security.protocol" value: "sasl_plaintext" }
  settings { name: "sasl.mechanism" value: "PLAIN" }
  settings { name: "sasl.username" value: "alice" }
  settings { name: "sasl.password" value: "file:/secrets/kafka/password" }
  end { at: NEVER }
  max_wait_ms: 200
})";

class PodTopicTest : public PodRunFixture {
 protected:
  void SetUp() override {
    PodRunFixture::SetUp();
    if (IsSkipped()) return;
    // Pods reach this machine at the address of their bridge, which is the node's.
    const std::string node = cluster().Kubectl(
        {"get", "nodes", "--output",
         "jsonpath={.items[0].status.addresses[?(@.type==\"InternalIP\")].address}"});
    const std::vector<int> ports = FreePorts(3);
    const std::string plain = absl::StrCat("127.0.0.1:", ports[0]);
    const std::string controller = absl::StrCat("127.0.0.1:", ports[1]);
    for_pods_ = absl::StrCat(node, ":", ports[2]);
    const std::string listeners =
        absl::StrCat("listeners=PLAINTEXT://", plain, ",SASL_PLAINTEXT://", for_pods_);
    broker_ = KafkaBroker::Start(
        {absl::StrCat(listeners, ",CONTROLLER://", controller), "advertised." + listeners,
         absl::StrCat("controller.quorum.voters=1@", controller),
         absl::StrCat("listener.security.protocol.map=PLAINTEXT:PLAINTEXT,",
                      "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"),
         "sasl.enabled.mechanisms=PLAIN",
         absl::StrCat("listener.name.sasl_plaintext.plain.sasl.jaas.config=",
                      "org.apache.kafka.common.security.plain.PlainLoginModule required ",
                      "user_alice=\"alice-secret\";")},
        plain);
    if (broker_ == nullptr) GTEST_SKIP() << "no Kafka broker is installed";
    Topics::broker_ = broker_.get();
  }

  void TearDown() override {
    PodRunFixture::TearDown();
    Topics::broker_ = nullptr;
    broker_.reset();
  }

  // As in TopicRunFixture.
  uint64_t IdOfRecord(int64_t record) const override { return Xxh64(absl::StrCat(record)); }

  // Writes the records from the place where the last call ended up to `to`.
  void ProduceTo(int64_t to) {
    Topics::Produce(topic_, kPartitions, produced_, to);
    produced_ = to;
  }

  // Waits until a cut covers all records: then the run is no longer behind.
  bool CatchesUp() const {
    const double deadline = MonotonicSeconds() + 120;
    while (Topics::Consumed(topic_) < produced_) {
      if (MonotonicSeconds() > deadline) return false;
      poll(nullptr, 0, 200);
    }
    return true;
  }

  std::unique_ptr<KafkaBroker> broker_;
  std::string for_pods_;  // the broker's address
  std::string topic_;
  int64_t produced_ = 0;
};

TEST_F(PodTopicTest, ARunThatADrainMovesCatchesUpAndTrainsEachRecordOnce) {
  topic_ = broker_->NewTopic(kPartitions);
  ProduceTo(20000);
  Kubectl({"create", "secret", "generic", "kafka-login", "--from-literal=password=alice-secret"});
  const std::string section = absl::StrReplaceAll(
      SectionOfPods(),
      {{"kubernetes {",
        "kubernetes { secrets { name: \"kafka-login\" mount_path: \"/secrets/kafka\" } "}});
  SubmitJob(WriteFile("job.textproto",
                      Topics::JobText(absl::Substitute(kData, for_pods_, topic_)) + section));
  ASSERT_TRUE(CatchesUp());
  ProduceTo(60000);
  cluster().DrainNode();
  ProduceTo(80000);
  ASSERT_TRUE(CatchesUp());
  EXPECT_EQ(Generations(), 2);
  StopRun();
  EXPECT_EQ(AwaitSubmit().exit_code, 0);
  ExpectEachRecordTrained(produced_);
}

}  // namespace
}  // namespace satrap
