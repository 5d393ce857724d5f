#include "nn_worker/rank/part_pipeline.h"

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

using Answer = NextBatchAnswerHeader;

class PartPipelineTest : public testing::Test {
 protected:
  void MakePipeline(int num_permits, int num_workers) {
    permits_ = std::make_unique<StalenessPermits>(num_permits);
    pipeline_ = std::make_unique<PartPipeline>(
        MakeAnyWorkerRequests(TRAIN_STREAM, 0, num_workers, 50), permits_.get(),
        [this](const PartRequest& request, absl::AnyInvocable<void(PartInput)> answered) {
          requests_.push_back(request);
          answered_.push_back(std::move(answered));
        },
        [this] { ++changes_; });
    pipeline_->RequestParts();
  }

  // Answers the i-th request.
  void Reply(size_t i, Answer::Result result, uint64_t handle = 0) {
    PartInput input;
    input.header.set_result(result);
    input.header.set_handle(handle);
    answered_[i](std::move(input));
  }

  // The handle of the part that is taken; -1 if there is none.
  int64_t Take() {
    auto part = pipeline_->Take();
    if (!part.has_value()) return -1;
    const uint64_t handle = part->input.header.handle();
    taken_[handle] = part->entry;
    staleness_[handle] = part->staleness;
    return static_cast<int64_t>(handle);
  }

  void Release(uint64_t handle) { pipeline_->Release(taken_[handle]); }

  void TearDown() override {
    pipeline_.reset();
    permits_.reset();
  }

  std::unique_ptr<StalenessPermits> permits_;
  std::unique_ptr<PartPipeline> pipeline_;
  std::vector<PartRequest> requests_;
  std::vector<absl::AnyInvocable<void(PartInput)>> answered_;
  std::map<uint64_t, uint64_t> taken_;
  std::map<uint64_t, int> staleness_;
  int changes_ = 0;
};

TEST_F(PartPipelineTest, RequestsWithEveryPermit) {
  MakePipeline(3, 2);
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(requests_[0].worker, 0);
  EXPECT_EQ(requests_[1].worker, 1);
  EXPECT_EQ(requests_[2].worker, 0);
  pipeline_->RequestParts();
  EXPECT_EQ(requests_.size(), 3u);
}

TEST_F(PartPipelineTest, AnUnansweredRequestHoldsLaterPartsBack) {
  MakePipeline(2, 2);
  Reply(1, Answer::PART, 11);
  EXPECT_EQ(Take(), -1);
  Reply(0, Answer::PART, 10);
  EXPECT_EQ(Take(), 10);
  EXPECT_EQ(Take(), 11);
  EXPECT_EQ(Take(), -1);
  EXPECT_EQ(changes_, 2);
}

TEST_F(PartPipelineTest, NotYetEndsTheRequestAndTheNextIsTheLastInThePipeline) {
  MakePipeline(2, 3);
  Reply(1, Answer::PART, 11);
  Reply(0, Answer::NOT_YET);
  pipeline_->RequestParts();
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(requests_[2].worker, 2);
  Reply(2, Answer::PART, 12);
  EXPECT_EQ(Take(), 11);
  EXPECT_EQ(Take(), 12);
}

TEST_F(PartPipelineTest, PermitsReturnInTheOrderOfRequests) {
  MakePipeline(2, 1);
  Reply(0, Answer::PART, 10);
  Reply(1, Answer::PART, 11);
  Take();
  Take();
  Release(11);
  EXPECT_EQ(permits_->in_use(), 2);
  pipeline_->RequestParts();
  EXPECT_EQ(requests_.size(), 2u);
  Release(10);
  EXPECT_EQ(permits_->in_use(), 0);
  EXPECT_TRUE(pipeline_->empty());
  pipeline_->RequestParts();
  EXPECT_EQ(requests_.size(), 4u);
}

TEST_F(PartPipelineTest, StalenessIsWhatWasUnreleasedAtTheRequest) {
  MakePipeline(2, 1);
  Reply(0, Answer::PART, 10);
  Reply(1, Answer::PART, 11);
  Take();
  Take();
  EXPECT_EQ(staleness_[10], 0);
  EXPECT_EQ(staleness_[11], 1);
}

TEST_F(PartPipelineTest, RequestsNothingWhileStopped) {
  MakePipeline(2, 1);
  pipeline_->StopRequests();
  Reply(0, Answer::NOT_YET);
  pipeline_->RequestParts();
  EXPECT_EQ(requests_.size(), 2u);
  EXPECT_TRUE(pipeline_->no_more_requests());
  EXPECT_FALSE(pipeline_->exhausted());
  pipeline_->ResumeRequests();
  pipeline_->RequestParts();
  EXPECT_EQ(requests_.size(), 3u);
}

TEST_F(PartPipelineTest, IsEmptyAndExhaustedAtTheEnd) {
  MakePipeline(2, 1);
  Reply(0, Answer::ENDED);
  pipeline_->RequestParts();
  EXPECT_TRUE(pipeline_->exhausted());
  EXPECT_FALSE(pipeline_->empty());
  Reply(1, Answer::ENDED);
  EXPECT_TRUE(pipeline_->empty());
  EXPECT_EQ(requests_.size(), 2u);
}

}  // namespace
}  // namespace satrap
