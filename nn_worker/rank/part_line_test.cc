#include "nn_worker/rank/part_line.h"

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

using Answer = NextBatchAnswerHeader;

class PartLineTest : public testing::Test {
 protected:
  void MakeLine(int num_permits, int num_workers) {
    permits_ = std::make_unique<StalenessPermits>(num_permits);
    line_ = std::make_unique<PartLine>(
        MakeAnyWorkerAsks(TRAIN_STREAM, 0, num_workers, 50), permits_.get(),
        [this](const Ask& ask, absl::AnyInvocable<void(PartInput)> answered) {
          asks_.push_back(ask);
          answered_.push_back(std::move(answered));
        },
        [this] { ++changes_; });
    line_->AskWithFreePermits();
  }

  // Answers the i-th ask.
  void Reply(size_t i, Answer::Result result, uint64_t handle = 0) {
    PartInput input;
    input.header.set_result(result);
    input.header.set_handle(handle);
    answered_[i](std::move(input));
  }

  // The handle of the part taken, -1 without one.
  int64_t Take() {
    auto part = line_->Take();
    if (!part.has_value()) return -1;
    const uint64_t handle = part->input.header.handle();
    taken_[handle] = part->place;
    staleness_[handle] = part->staleness;
    return static_cast<int64_t>(handle);
  }

  void Release(uint64_t handle) { line_->Release(taken_[handle]); }

  void TearDown() override {
    line_.reset();
    permits_.reset();
  }

  std::unique_ptr<StalenessPermits> permits_;
  std::unique_ptr<PartLine> line_;
  std::vector<Ask> asks_;
  std::vector<absl::AnyInvocable<void(PartInput)>> answered_;
  std::map<uint64_t, uint64_t> taken_;
  std::map<uint64_t, int> staleness_;
  int changes_ = 0;
};

TEST_F(PartLineTest, AsksWithEveryPermit) {
  MakeLine(3, 2);
  ASSERT_EQ(asks_.size(), 3u);
  EXPECT_EQ(asks_[0].worker, 0);
  EXPECT_EQ(asks_[1].worker, 1);
  EXPECT_EQ(asks_[2].worker, 0);
  line_->AskWithFreePermits();
  EXPECT_EQ(asks_.size(), 3u);
}

TEST_F(PartLineTest, AnUnansweredAskHoldsLaterPartsBack) {
  MakeLine(2, 2);
  Reply(1, Answer::PART, 11);
  EXPECT_EQ(Take(), -1);
  Reply(0, Answer::PART, 10);
  EXPECT_EQ(Take(), 10);
  EXPECT_EQ(Take(), 11);
  EXPECT_EQ(Take(), -1);
  EXPECT_EQ(changes_, 2);
}

TEST_F(PartLineTest, NotYetEndsTheAskAndTheNextGoesToTheEndOfTheLine) {
  MakeLine(2, 3);
  Reply(1, Answer::PART, 11);
  Reply(0, Answer::NOT_YET);
  line_->AskWithFreePermits();
  ASSERT_EQ(asks_.size(), 3u);
  EXPECT_EQ(asks_[2].worker, 2);
  Reply(2, Answer::PART, 12);
  EXPECT_EQ(Take(), 11);
  EXPECT_EQ(Take(), 12);
}

TEST_F(PartLineTest, PermitsReturnInTheOrderOfTheLine) {
  MakeLine(2, 1);
  Reply(0, Answer::PART, 10);
  Reply(1, Answer::PART, 11);
  Take();
  Take();
  Release(11);
  EXPECT_EQ(permits_->in_use(), 2);
  line_->AskWithFreePermits();
  EXPECT_EQ(asks_.size(), 2u);
  Release(10);
  EXPECT_EQ(permits_->in_use(), 0);
  EXPECT_TRUE(line_->empty());
  line_->AskWithFreePermits();
  EXPECT_EQ(asks_.size(), 4u);
}

TEST_F(PartLineTest, StalenessIsWhatWasUnreleasedAtTheAsk) {
  MakeLine(2, 1);
  Reply(0, Answer::PART, 10);
  Reply(1, Answer::PART, 11);
  Take();
  Take();
  EXPECT_EQ(staleness_[10], 0);
  EXPECT_EQ(staleness_[11], 1);
}

TEST_F(PartLineTest, AsksNothingWhileStopped) {
  MakeLine(2, 1);
  line_->StopAsking();
  Reply(0, Answer::NOT_YET);
  line_->AskWithFreePermits();
  EXPECT_EQ(asks_.size(), 2u);
  EXPECT_TRUE(line_->may_not_ask());
  EXPECT_FALSE(line_->exhausted());
  line_->ResumeAsking();
  line_->AskWithFreePermits();
  EXPECT_EQ(asks_.size(), 3u);
}

TEST_F(PartLineTest, IsEmptyAndExhaustedAtTheEnd) {
  MakeLine(2, 1);
  Reply(0, Answer::ENDED);
  line_->AskWithFreePermits();
  EXPECT_TRUE(line_->exhausted());
  EXPECT_FALSE(line_->empty());
  Reply(1, Answer::ENDED);
  EXPECT_TRUE(line_->empty());
  EXPECT_EQ(asks_.size(), 2u);
}

}  // namespace
}  // namespace satrap
