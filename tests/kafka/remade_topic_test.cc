// Tests a topic that is deleted and made again while a PartitionReader reads it, with a real
// broker.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/kafka/partition_guard.h"
#include "common/kafka/partition_reader.h"
#include "common/log/log.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"
#include "tests/kafka/kafka_broker.h"

namespace satrap {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kPatienceMs = 60000;

std::vector<std::string> Numbered(int count, const std::string& prefix) {
  std::vector<std::string> values;
  for (int i = 0; i < count; ++i) values.push_back(absl::StrCat(prefix, i));
  return values;
}

// In these tests the reader seldom asks which broker leads a partition. So it finds the new topic
// only when the new topic has as many messages as the reader knows of the old one. Without a check,
// the reader could then continue in the new topic without noticing a gap.
class RemadeTopicTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { broker_ = KafkaBroker::Start().release(); }
  static void TearDownTestSuite() { delete broker_; }
  void SetUp() override {
    if (broker_ == nullptr) GTEST_SKIP() << "no Kafka broker is installed";
    topic_ = broker_->NewTopic(1);
    broker_->Produce({topic_, 0}, Numbered(50, "old"));
  }
  void Open(int64_t offset) {
    reader_.reset();
    KafkaConfig config = broker_->Config("");
    KafkaSetting* const seldom = config.add_settings();
    seldom->set_name("topic.metadata.refresh.fast.interval.ms");
    seldom->set_value("6000");
    auto reader = PartitionReader::Open(config, {{{topic_, 0}, offset, anchor_}}, Logger(), nullptr,
                                        [this](const auto& anchors) {
                                          MutexLock lock(&mutex_);
                                          kept_ = anchors[0].second;
                                          is_kept_.NotifyAll();
                                        });
    CHECK(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
  }
  // Reads until `count` messages were delivered, or until an error occurs.
  absl::Status Read(size_t count) {
    const int64_t deadline_ms = MonotonicMs() + kPatienceMs;
    absl::Status status;
    for (size_t read = 0; status.ok() && read < count;) {
      CHECK(MonotonicMs() < deadline_ms) << "no error after " << read << " messages";
      reader_->Wait({0}, absl::Seconds(1));
      MessageBatch batch;
      status = reader_->Read(0, 1000, &batch);
      read += batch.size();
    }
    return status;
  }
  void AwaitGuard() {
    const int64_t deadline_ms = MonotonicMs() + kPatienceMs;
    while (!reader_->is_guarded(0)) {
      CHECK(MonotonicMs() < deadline_ms) << "no anchor";
      reader_->Wait({}, absl::Milliseconds(50));
    }
  }
  // Waits until the reader has saved an anchor, which the next reader gets, and then ends it.
  void EndOnceAnchored() {
    {
      MutexLock lock(&mutex_);
      const int64_t deadline_ms = MonotonicMs() + kPatienceMs;
      while (!kept_.has_value()) {
        CHECK(MonotonicMs() < deadline_ms) << "no anchor is kept";
        is_kept_.WaitFor(&mutex_, 1000);
      }
      anchor_ = kept_;
    }
    reader_.reset();
  }
  // Replaces the topic by one of the same name with other messages, and with more messages.
  void MakeAnew() {
    CHECK_OK(broker_->admin().DeleteTopic(topic_));
    const int64_t deadline_ms = MonotonicMs() + kPatienceMs;
    // The broker may still be removing the old topic.
    while (!broker_->admin().CreateTopic(topic_, 1).ok()) CHECK(MonotonicMs() < deadline_ms);
    broker_->Produce({topic_, 0}, Numbered(100, "new"));
  }
  void ExpectRefused() {
    const absl::Status status = Read(1000);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(topic_ + "/0, offset "), HasSubstr("made anew")));
    MessageBatch batch;
    EXPECT_EQ(reader_->Read(0, 10, &batch), status) << "the error stays";
  }

  static KafkaBroker* broker_;
  std::string topic_;
  absl::optional<PartitionAnchor> anchor_;
  Mutex mutex_;
  CondVar is_kept_;
  absl::optional<PartitionAnchor> kept_ GUARDED_BY(mutex_);
  std::unique_ptr<PartitionReader> reader_;  // writes the above
};

KafkaBroker* RemadeTopicTest::broker_ = nullptr;

TEST_F(RemadeTopicTest, IsAnErrorThoughTheOffsetsGoOn) {
  Open(0);
  ASSERT_TRUE(Read(50).ok());
  MakeAnew();
  ExpectRefused();
}

TEST_F(RemadeTopicTest, IsAnErrorOfAPartitionOfWhichNothingWasReadYet) {
  Open(50);
  AwaitGuard();
  MakeAnew();
  ExpectRefused();
}

TEST_F(RemadeTopicTest, IsAnErrorOfAPartitionOfWhichAllHadExpired) {
  ASSERT_TRUE(broker_->admin().DeleteRecords({{topic_, 0}, 50}).ok());
  Open(50);
  AwaitGuard();
  MakeAnew();
  ExpectRefused();
}

TEST_F(RemadeTopicTest, IsNoneIfMessagesHaveExpiredOnly) {
  Open(0);
  ASSERT_TRUE(Read(50).ok());
  ASSERT_TRUE(broker_->admin().DeleteRecords({{topic_, 0}, 50}).ok());
  broker_->Produce({topic_, 0}, Numbered(10, "more"));
  ASSERT_TRUE(Read(10).ok());
  // The reader checks the topic during this time, and must find nothing wrong.
  const int64_t begin_ms = MonotonicMs();
  while (MonotonicMs() - begin_ms < 2 * PartitionGuard::kFirstLookMs) {
    reader_->Wait({0}, absl::Milliseconds(100));
    MessageBatch batch;
    ASSERT_TRUE(reader_->Read(0, 10, &batch).ok());
  }
}

TEST_F(RemadeTopicTest, IsAnErrorAtTheNextReaderIfNobodyReadMeanwhile) {
  Open(50);
  EndOnceAnchored();
  MakeAnew();
  Open(50);
  EXPECT_FALSE(Read(1).ok()) << "nothing of the new topic is given";
  ExpectRefused();
}

TEST_F(RemadeTopicTest, IsAnErrorAtTheNextReaderThoughItHasFewerMessagesThanTheAnchor) {
  Open(0);
  ASSERT_TRUE(Read(50).ok());
  EndOnceAnchored();
  CHECK_OK(broker_->admin().DeleteTopic(topic_));
  const int64_t deadline_ms = MonotonicMs() + kPatienceMs;
  while (!broker_->admin().CreateTopic(topic_, 1).ok()) CHECK(MonotonicMs() < deadline_ms);
  broker_->Produce({topic_, 0}, Numbered(20, "new"));
  Open(10);
  EXPECT_FALSE(Read(1).ok()) << "what is before offset 10 would be missed";
  ExpectRefused();
}

TEST_F(RemadeTopicTest, TheSameTopicGoesOnAtTheNextReader) {
  Open(50);
  EndOnceAnchored();
  broker_->Produce({topic_, 0}, Numbered(10, "more"));
  Open(50);
  EXPECT_TRUE(Read(10).ok());
}

}  // namespace
}  // namespace satrap
