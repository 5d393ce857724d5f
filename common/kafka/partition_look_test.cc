#include "common/kafka/partition_look.h"

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/kafka/client.h"
#include "common/kafka/testing/mock_brokers.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

constexpr int64_t kPatienceMs = 60000;

// A topic of two partitions of ten messages each, "0" to "9". Each partition has a broker of its
// own.
class PartitionLookTest : public testing::Test {
 protected:
  PartitionLookTest() {
    brokers_.MakeTopic("clicks", 2);
    std::vector<std::string> values;
    for (int i = 0; i < 10; ++i) values.push_back(absl::StrCat(i));
    for (const int partition : {0, 1}) brokers_.Produce({"clicks", partition}, values);
  }
  static PartitionQuestion At(int partition, int64_t offset) {
    PartitionQuestion question;
    question.partition = {"clicks", partition};
    question.offset = offset;
    return question;
  }
  static PartitionQuestion WithLatest(PartitionQuestion question) {
    question.asks_latest = true;
    return question;
  }
  static PartitionQuestion WithEarliest(PartitionQuestion question) {
    question.asks_earliest = true;
    return question;
  }
  std::unique_ptr<KafkaClient> Client() const {
    KafkaClient::Options options;
    options.role = KafkaRole::kReader;
    auto client = KafkaClient::Create(brokers_.Config(), std::move(options));
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  // Looks until `count` questions are answered. Returns each look under the index of its question
  // in `questions`.
  std::map<size_t, PartitionLook> Look(const std::vector<PartitionQuestion>& questions,
                                       size_t count) {
    const auto client = Client();
    std::map<size_t, PartitionLook> looks;
    LookAtPartitions(
        client.get(), questions, kPatienceMs, [&] { return looks.size() == count; },
        [&](size_t i, const PartitionLook& look) {
          EXPECT_TRUE(looks.emplace(i, look).second) << "question " << i << " is answered twice";
        });
    EXPECT_EQ(looks.size(), count);
    return looks;
  }

  MockBrokers brokers_{2};
};

TEST_F(PartitionLookTest, FindsTheFirstMessageAtAnOffset) {
  const auto looks = Look({At(0, 7), WithEarliest(At(1, 3))}, 2);
  ASSERT_TRUE(looks.at(0).first.has_value());
  EXPECT_EQ(looks.at(0).first->offset, 7);
  EXPECT_EQ(looks.at(0).first->hash, Xxh64("7"));
  EXPECT_EQ(looks.at(1).first->hash, Xxh64("3"));
  EXPECT_EQ(looks.at(1).earliest, 0);
}

TEST_F(PartitionLookTest, FindsWhereAPartitionEndsThatIsTooShort) {
  const auto looks = Look({WithLatest(At(0, 10)), WithLatest(At(1, 30))}, 2);
  EXPECT_FALSE(looks.at(0).first.has_value());
  EXPECT_EQ(looks.at(0).latest, 10);
  EXPECT_EQ(looks.at(1).latest, 10);
}

TEST_F(PartitionLookTest, OfWhatIsNotAskedTheEndIsAnAnswer) {
  const auto looks = Look({At(0, 10), At(1, 30)}, 2);
  EXPECT_FALSE(looks.at(0).first.has_value());
  EXPECT_FALSE(looks.at(1).first.has_value());
}

TEST_F(PartitionLookTest, ABrokerThatIsDownHoldsUpNoPartitionOfAnother) {
  brokers_.TakeDown(1);
  auto looks = Look({WithLatest(At(1, 30)), WithLatest(At(0, 30))}, 1);
  ASSERT_EQ(looks.count(1), 1u);
  EXPECT_EQ(looks.at(1).latest, 10);
  looks = Look({WithEarliest(At(1, 3)), WithEarliest(At(0, 3))}, 1);
  ASSERT_EQ(looks.count(1), 1u);
  EXPECT_EQ(looks.at(1).earliest, 0);
  EXPECT_EQ(looks.at(1).first->hash, Xxh64("3"));
  brokers_.BringUp(1);
  EXPECT_EQ(Look({WithLatest(At(1, 30)), WithLatest(At(0, 30))}, 2).at(0).latest, 10);
}

TEST_F(PartitionLookTest, AQuestionForTheEndThatIsRefusedIsAskedAgain) {
  brokers_.RefuseOffsets(5);
  const auto looks = Look({WithLatest(At(0, 30)), WithLatest(At(1, 10))}, 2);
  EXPECT_EQ(looks.at(0).latest, 10);
  EXPECT_EQ(looks.at(1).latest, 10);
}

TEST_F(PartitionLookTest, ARefusalOfTheFirstOffsetThatWaitingDoesNotCureIsAnAnswer) {
  brokers_.ForbidOffsets(100);
  const auto looks = Look({WithEarliest(At(0, 3)), At(1, 7)}, 2);
  ASSERT_EQ(looks.count(0), 1u);
  EXPECT_FALSE(looks.at(0).first.has_value());
  EXPECT_EQ(looks.at(0).earliest, -1);
  ASSERT_EQ(looks.count(1), 1u);
  EXPECT_EQ(looks.at(1).first->hash, Xxh64("7")) << "no offset was asked for";
}

// The partition was shorter when its messages were asked for than when its end was asked for.
TEST_F(PartitionLookTest, APartitionThatHasGrownPastTheOffsetIsNotTakenForOneThatEndsThere) {
  brokers_.HideMessagesOnce();
  const auto client = Client();
  absl::optional<PartitionLook> found;
  int polls = 0;
  const auto stop = [&] {
    // Both offsets are known once the fetch was answered. After that, a poll reports that the
    // offset of the question is after the end.
    int64_t low = -1, high = -1;
    rd_kafka_get_watermark_offsets(client->get(), "clicks", 0, &low, &high);
    return high == 10 && ++polls == 10;
  };
  LookAtPartitions(client.get(), {WithLatest(At(0, 5))}, kPatienceMs, stop,
                   [&](size_t, const PartitionLook& look) { found = look; });
  EXPECT_EQ(polls, 10);
  EXPECT_FALSE(found.has_value()) << "a later look finds the message";
}

}  // namespace
}  // namespace satrap
