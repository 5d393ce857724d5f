#include "common/kafka/client.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

constexpr auto kRefused = RD_KAFKA_RESP_ERR__AUTHENTICATION;

TEST(ConnectionTroubleTest, ARefusedLoginIsHopelessUntilABrokerHasAnswered) {
  ConnectionTrouble trouble;
  trouble.NoteError(kRefused, "b1: refused (after 3ms in state AUTH)");
  EXPECT_TRUE(trouble.last().hopeless);
  EXPECT_EQ(trouble.last().reason, "b1: refused");
  trouble.NoteError(RD_KAFKA_RESP_ERR__TRANSPORT, "b1: closed");
  EXPECT_EQ(trouble.last().code, kRefused) << "what comes after it says less";
  trouble.NoteAnswer();
  EXPECT_EQ(trouble.last().code, RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_FALSE(trouble.last().hopeless);
  trouble.NoteError(RD_KAFKA_RESP_ERR__SSL, "b2: restarts");
  EXPECT_EQ(trouble.last().reason, "b2: restarts");
  EXPECT_FALSE(trouble.last().hopeless) << "the login has worked";
}

TEST(ConnectionTroubleTest, ThatAllBrokersAreDownDoesNotReplaceItsReason) {
  ConnectionTrouble trouble;
  trouble.NoteError(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 brokers are down");
  EXPECT_EQ(trouble.last().reason, "1/1 brokers are down");
  trouble.NoteError(RD_KAFKA_RESP_ERR__RESOLVE, "b1: unknown host");
  trouble.NoteError(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 brokers are down");
  EXPECT_EQ(trouble.last().reason, "b1: unknown host");
}

}  // namespace
}  // namespace satrap
