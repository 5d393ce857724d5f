#include "nn_worker/rank/request_policy.h"

#include "common/batch/part_placement.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using Answer = NextBatchAnswerHeader;

class AnyWorkerRequestsTest : public testing::Test {
 protected:
  // Makes a request, answers it, and returns "worker:wait_ms" of the request.
  std::string RequestAndAnswer(Answer::Result result) {
    const auto request = policy_->NextRequest();
    if (!request.has_value()) return "none";
    policy_->OnAnswer(*request, result, false);
    return std::to_string(request->worker) + ":" + std::to_string(request->wait_ms);
  }

  std::unique_ptr<RequestPolicy> policy_ = MakeAnyWorkerRequests(TRAIN_STREAM, 2, 3, 50);
};

TEST_F(AnyWorkerRequestsTest, TriesAllWithoutWaitingThenParks) {
  EXPECT_EQ(RequestAndAnswer(Answer::NOT_YET), "0:0");
  EXPECT_EQ(RequestAndAnswer(Answer::NOT_YET), "1:0");
  EXPECT_EQ(RequestAndAnswer(Answer::NOT_YET), "2:0");
  EXPECT_EQ(RequestAndAnswer(Answer::NOT_YET), "0:50");
  EXPECT_EQ(RequestAndAnswer(Answer::NOT_YET), "1:50");
}

TEST_F(AnyWorkerRequestsTest, APartBeginsTheTriesAnew) {
  for (int i = 0; i < 4; ++i) RequestAndAnswer(Answer::NOT_YET);
  EXPECT_EQ(RequestAndAnswer(Answer::PART), "1:50");
  EXPECT_EQ(RequestAndAnswer(Answer::NOT_YET), "2:0");
}

TEST_F(AnyWorkerRequestsTest, InAQuietTimeRequestsWaitLongerUntilAPartComes) {
  for (int i = 0; i < 3 * 16 - 1; ++i) RequestAndAnswer(Answer::NOT_YET);
  EXPECT_EQ(RequestAndAnswer(Answer::NOT_YET), "2:50");
  EXPECT_EQ(RequestAndAnswer(Answer::NOT_YET), "0:100");
  for (int i = 0; i < 1000; ++i) RequestAndAnswer(Answer::NOT_YET);
  EXPECT_EQ(RequestAndAnswer(Answer::PART), "2:200");
  EXPECT_EQ(RequestAndAnswer(Answer::NOT_YET), "0:0");
  for (int i = 0; i < 2; ++i) RequestAndAnswer(Answer::NOT_YET);
  EXPECT_EQ(RequestAndAnswer(Answer::NOT_YET), "0:50");
}

TEST_F(AnyWorkerRequestsTest, AnEndedWorkerGetsNoMoreRequests) {
  EXPECT_EQ(RequestAndAnswer(Answer::ENDED), "0:0");
  EXPECT_EQ(RequestAndAnswer(Answer::NOT_YET), "1:0");
  EXPECT_EQ(RequestAndAnswer(Answer::ENDED), "2:0");
  EXPECT_FALSE(policy_->exhausted());
  EXPECT_EQ(RequestAndAnswer(Answer::ENDED), "1:50");
  EXPECT_TRUE(policy_->exhausted());
  EXPECT_EQ(RequestAndAnswer(Answer::PART), "none");
}

TEST_F(AnyWorkerRequestsTest, EndedTwiceCountsOnce) {
  const PartRequest first = *policy_->NextRequest();
  policy_->OnAnswer(first, Answer::ENDED, false);
  policy_->OnAnswer(first, Answer::ENDED, false);
  policy_->OnAnswer(first, Answer::ENDED, false);
  EXPECT_FALSE(policy_->exhausted());
}

TEST_F(AnyWorkerRequestsTest, NamesStreamAndEpoch) {
  const PartRequest request = *policy_->NextRequest();
  EXPECT_EQ(request.stream, TRAIN_STREAM);
  EXPECT_EQ(request.epoch, 2u);
  EXPECT_FALSE(request.wanted.has_value());
}

TEST(OrderedRequestsTest, WantsItsPartOfEachBatchInOrderUntilTheEnd) {
  auto policy = MakeOrderedRequests(/*epoch=*/1, /*num_workers=*/2, OrderedSchedule(/*lanes=*/2),
                                    /*rank=*/3);
  const bool last_of_lane[] = {false, true, true};
  const int lanes[] = {0, 1, 0};
  const int seqs[] = {0, 0, 1};
  for (int i = 0; i < 3; ++i) {
    const PartRequest request = *policy->NextRequest();
    EXPECT_EQ(request.wanted->lane(), lanes[i]);
    EXPECT_EQ(request.wanted->seq(), seqs[i]);
    EXPECT_EQ(request.wanted->part(), 3u);
    EXPECT_EQ(request.wanted->epoch(), 1u);
    EXPECT_EQ(request.worker, WorkerOfPart(lanes[i], seqs[i], 3, 2));
    policy->OnAnswer(request, Answer::PART, last_of_lane[i]);
  }
  EXPECT_TRUE(policy->exhausted());
  EXPECT_FALSE(policy->NextRequest().has_value());
}

}  // namespace
}  // namespace satrap
