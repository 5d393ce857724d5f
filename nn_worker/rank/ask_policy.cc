#include "nn_worker/rank/ask_policy.h"

#include <vector>

#include "common/check.h"
#include "common/part_placement.h"

namespace satrap {
namespace {

class AnyWorkerAsks final : public AskPolicy {
 public:
  AnyWorkerAsks(Stream stream, uint32_t epoch, int num_workers, uint32_t park_ms)
      : stream_(stream),
        epoch_(epoch),
        park_ms_(park_ms),
        ended_(num_workers, false),
        workers_left_(num_workers) {
    CHECK(num_workers >= 1);
    CHECK(park_ms >= 1);
  }

  absl::optional<Ask> NextAsk() override {
    if (exhausted()) return absl::nullopt;
    while (ended_[next_worker_]) next_worker_ = (next_worker_ + 1) % ended_.size();
    Ask ask;
    ask.worker = static_cast<int>(next_worker_);
    ask.stream = stream_;
    ask.epoch = epoch_;
    ask.wait_ms = asks_in_vain_ < workers_left_ ? 0 : park_ms_;
    next_worker_ = (next_worker_ + 1) % ended_.size();
    return ask;
  }

  void OnAnswer(const Ask& ask, NextBatchAnswerHeader::Result result, bool) override {
    switch (result) {
      case NextBatchAnswerHeader::PART:
        asks_in_vain_ = 0;
        return;
      case NextBatchAnswerHeader::NOT_YET:
        ++asks_in_vain_;
        return;
      case NextBatchAnswerHeader::ENDED:
        // Of several asks at one worker, each is told.
        if (!ended_[ask.worker]) --workers_left_;
        ended_[ask.worker] = true;
        return;
    }
  }

  bool exhausted() const override { return workers_left_ == 0; }

 private:
  const Stream stream_;
  const uint32_t epoch_;
  const uint32_t park_ms_;
  std::vector<bool> ended_;  // by worker
  int workers_left_;
  size_t next_worker_ = 0;
  int asks_in_vain_ = 0;  // since the last part
};

class OrderedAsks final : public AskPolicy {
 public:
  OrderedAsks(uint32_t epoch, int num_workers, int lanes, int rank)
      : epoch_(epoch), num_workers_(num_workers), rank_(rank), schedule_(lanes) {}

  absl::optional<Ask> NextAsk() override {
    const auto batch = schedule_.Next();
    if (!batch.has_value()) return absl::nullopt;
    PartId wanted;
    wanted.set_stream(TRAIN_STREAM);
    wanted.set_epoch(epoch_);
    wanted.set_lane(batch->lane);
    wanted.set_seq(batch->seq);
    wanted.set_part(rank_);
    Ask ask;
    ask.worker = WorkerOfPart(batch->lane, batch->seq, rank_, num_workers_);
    ask.stream = TRAIN_STREAM;
    ask.epoch = epoch_;
    ask.wanted = std::move(wanted);
    return ask;
  }

  void OnAnswer(const Ask&, NextBatchAnswerHeader::Result result, bool last_of_lane) override {
    CHECK(result == NextBatchAnswerHeader::PART);  // PartLine refuses anything else
    schedule_.Take(last_of_lane);
  }

  bool exhausted() const override { return !schedule_.Next().has_value(); }

 private:
  const uint32_t epoch_;
  const int num_workers_;
  const int rank_;
  OrderedSchedule schedule_;
};

}  // namespace

std::unique_ptr<AskPolicy> MakeAnyWorkerAsks(Stream stream, uint32_t epoch, int num_workers,
                                             uint32_t park_ms) {
  return std::make_unique<AnyWorkerAsks>(stream, epoch, num_workers, park_ms);
}

std::unique_ptr<AskPolicy> MakeOrderedAsks(uint32_t epoch, int num_workers, int lanes, int rank) {
  return std::make_unique<OrderedAsks>(epoch, num_workers, lanes, rank);
}

}  // namespace satrap
