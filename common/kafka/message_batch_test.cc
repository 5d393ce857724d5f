#include "common/kafka/message_batch.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

TEST(MessageBatchTest, HoldsWhatWasAddedInOrder) {
  MessageBatch batch;
  EXPECT_TRUE(batch.empty());
  MessageBatch::Message message;
  message.offset = 7;
  message.value = "one";
  message.key = "k";
  message.headers["lang"] = "de";
  message.time_ms = 1234;
  batch.Add(message);
  MessageBatch::Message tombstone;
  tombstone.offset = 9;
  tombstone.is_tombstone = true;
  batch.Add(tombstone);
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch.offset(0), 7);
  EXPECT_EQ(batch.value(0), "one");
  EXPECT_FALSE(batch.is_tombstone(0));
  EXPECT_EQ(batch.key(0), "k");
  EXPECT_EQ(batch.header(0, "lang"), "de");
  EXPECT_FALSE(batch.header(0, "country").has_value());
  EXPECT_EQ(batch.time_ms(0), 1234);
  EXPECT_EQ(batch.offset(1), 9);
  EXPECT_EQ(batch.value(1), "");
  EXPECT_TRUE(batch.is_tombstone(1));
  EXPECT_FALSE(batch.key(1).has_value()) << "none is not the same as an empty one";
  EXPECT_EQ(batch.time_ms(1), -1);
  batch.Clear();
  EXPECT_TRUE(batch.empty());
}

TEST(MessageBatchTest, AnEmptyKeyIsAKey) {
  MessageBatch batch;
  MessageBatch::Message message;
  message.key = "";
  batch.Add(message);
  ASSERT_TRUE(batch.key(0).has_value());
  EXPECT_EQ(*batch.key(0), "");
}

}  // namespace
}  // namespace satrap
