#include "nn_worker/rank/ask_policy.h"

#include "common/part_placement.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using Answer = NextBatchAnswerHeader;

class AnyWorkerAsksTest : public testing::Test {
 protected:
  // Asks, is answered, and tells "worker:wait_ms" of the ask.
  std::string AskAndGet(Answer::Result result) {
    const auto ask = policy_->NextAsk();
    if (!ask.has_value()) return "none";
    policy_->OnAnswer(*ask, result, false);
    return std::to_string(ask->worker) + ":" + std::to_string(ask->wait_ms);
  }

  std::unique_ptr<AskPolicy> policy_ = MakeAnyWorkerAsks(TRAIN_STREAM, 2, 3, 50);
};

TEST_F(AnyWorkerAsksTest, TriesAllWithoutWaitingThenParks) {
  EXPECT_EQ(AskAndGet(Answer::NOT_YET), "0:0");
  EXPECT_EQ(AskAndGet(Answer::NOT_YET), "1:0");
  EXPECT_EQ(AskAndGet(Answer::NOT_YET), "2:0");
  EXPECT_EQ(AskAndGet(Answer::NOT_YET), "0:50");
  EXPECT_EQ(AskAndGet(Answer::NOT_YET), "1:50");
}

TEST_F(AnyWorkerAsksTest, APartBeginsTheTriesAnew) {
  for (int i = 0; i < 4; ++i) AskAndGet(Answer::NOT_YET);
  EXPECT_EQ(AskAndGet(Answer::PART), "1:50");
  EXPECT_EQ(AskAndGet(Answer::NOT_YET), "2:0");
}

TEST_F(AnyWorkerAsksTest, AnEndedWorkerIsNotAskedAgain) {
  EXPECT_EQ(AskAndGet(Answer::ENDED), "0:0");
  EXPECT_EQ(AskAndGet(Answer::NOT_YET), "1:0");
  EXPECT_EQ(AskAndGet(Answer::ENDED), "2:0");
  EXPECT_FALSE(policy_->exhausted());
  EXPECT_EQ(AskAndGet(Answer::ENDED), "1:50");
  EXPECT_TRUE(policy_->exhausted());
  EXPECT_EQ(AskAndGet(Answer::PART), "none");
}

TEST_F(AnyWorkerAsksTest, EndedTwiceCountsOnce) {
  const Ask first = *policy_->NextAsk();
  policy_->OnAnswer(first, Answer::ENDED, false);
  policy_->OnAnswer(first, Answer::ENDED, false);
  policy_->OnAnswer(first, Answer::ENDED, false);
  EXPECT_FALSE(policy_->exhausted());
}

TEST_F(AnyWorkerAsksTest, NamesStreamAndEpoch) {
  const Ask ask = *policy_->NextAsk();
  EXPECT_EQ(ask.stream, TRAIN_STREAM);
  EXPECT_EQ(ask.epoch, 2u);
  EXPECT_FALSE(ask.wanted.has_value());
}

TEST(OrderedAsksTest, WantsItsPartOfEachBatchInOrderUntilTheEnd) {
  auto policy = MakeOrderedAsks(/*epoch=*/1, /*num_workers=*/2, /*lanes=*/2, /*rank=*/3);
  const bool last_of_lane[] = {false, true, true};
  const int lanes[] = {0, 1, 0};
  const int seqs[] = {0, 0, 1};
  for (int i = 0; i < 3; ++i) {
    const Ask ask = *policy->NextAsk();
    EXPECT_EQ(ask.wanted->lane(), lanes[i]);
    EXPECT_EQ(ask.wanted->seq(), seqs[i]);
    EXPECT_EQ(ask.wanted->part(), 3u);
    EXPECT_EQ(ask.wanted->epoch(), 1u);
    EXPECT_EQ(ask.worker, WorkerOfPart(lanes[i], seqs[i], 3, 2));
    policy->OnAnswer(ask, Answer::PART, last_of_lane[i]);
  }
  EXPECT_TRUE(policy->exhausted());
  EXPECT_FALSE(policy->NextAsk().has_value());
}

}  // namespace
}  // namespace satrap
