#include "common/kafka/partition_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/kafka/client.h"
#include "common/kafka/testing/mock_brokers.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"

namespace satrap {
namespace {

// A watch of two partitions of ten messages each, led by brokers 0 and 1.
class PartitionWatchTest : public testing::Test {
 protected:
  PartitionWatchTest() {
    brokers_.MakeTopic("clicks", 2);
    for (const KafkaPartition& partition : partitions_) {
      brokers_.Produce(partition, std::vector<std::string>(10, "x"));
    }
  }
  void Begin() {
    KafkaClient::Options options;
    options.role = KafkaRole::kReader;
    auto client = KafkaClient::Create(brokers_.Config(), std::move(options));
    CHECK(client.ok()) << client.status();
    client_ = *std::move(client);
    const std::vector<KafkaPlace> places = {{partitions_[0], 0}, {partitions_[1], 0}};
    guard_ = std::make_unique<PartitionGuard>(brokers_.Config(), places, Logger(), [] {});
    watch_ =
        std::make_unique<PartitionWatch>(client_.get(), partitions_, 600, Logger(),
                                         std::make_shared<BrokerOutage>(), guard_.get(), [] {});
  }
  // Waits until the watch knows the partition's end, which may take several of its queries.
  void AwaitEnd(size_t index) {
    const int64_t deadline_ms = MonotonicMs() + 60000;
    while (watch_->end_offset(index) != 10) {
      CHECK(MonotonicMs() < deadline_ms) << "the end of partition " << index << " is not known";
      watch_->NoteLow();
      MutexLock lock(&mutex_);
      never_.WaitFor(&mutex_, 10);  // the watch does not signal a new end
    }
  }

  Mutex mutex_;
  CondVar never_;
  const std::vector<KafkaPartition> partitions_ = {{"clicks", 0}, {"clicks", 1}};
  MockBrokers brokers_{2};
  std::unique_ptr<KafkaClient> client_;
  std::unique_ptr<PartitionGuard> guard_;
  std::unique_ptr<PartitionWatch> watch_;
};

TEST_F(PartitionWatchTest, ABrokerThatIsDownHidesTheEndsOfItsOwnPartitionsOnly) {
  brokers_.TakeDown(1);
  Begin();
  AwaitEnd(0);
  EXPECT_EQ(watch_->end_offset(1), -1);
  brokers_.BringUp(1);
  AwaitEnd(1);
}

}  // namespace
}  // namespace satrap
