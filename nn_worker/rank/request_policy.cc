#include "nn_worker/rank/request_policy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/batch/part_placement.h"

namespace satrap {
namespace {

// After this many rounds without a part, requests wait twice as long at each worker; after twice as
// many rounds, they wait four times as long. So a quiet topic costs a rank and the workers only a
// few calls a second.
constexpr int kRoundsUntilQuiet = 16;
constexpr int kMostQuietDoublings = 2;

class AnyWorkerRequests final : public RequestPolicy {
 public:
  AnyWorkerRequests(Stream stream, uint32_t epoch, int num_workers, uint32_t park_ms)
      : stream_(stream),
        epoch_(epoch),
        park_ms_(park_ms),
        ended_(num_workers, false),
        workers_left_(num_workers) {
    CHECK(num_workers >= 1);
    CHECK(park_ms >= 1);
  }

  absl::optional<PartRequest> NextRequest() override {
    if (exhausted()) return absl::nullopt;
    while (ended_[next_worker_]) next_worker_ = (next_worker_ + 1) % ended_.size();
    PartRequest request;
    request.worker = static_cast<int>(next_worker_);
    request.stream = stream_;
    request.epoch = epoch_;
    // While some worker may have a part ready, no request waits at a worker that has none.
    const int rounds = not_yets_in_a_row_ / workers_left_;
    request.wait_ms =
        rounds == 0 ? 0 : park_ms_ << std::min(rounds / kRoundsUntilQuiet, kMostQuietDoublings);
    next_worker_ = (next_worker_ + 1) % ended_.size();
    return request;
  }

  void OnAnswer(const PartRequest& request, NextBatchAnswerHeader::Result result, bool) override {
    switch (result) {
      case NextBatchAnswerHeader::PART:
        not_yets_in_a_row_ = 0;
        return;
      case NextBatchAnswerHeader::NOT_YET:
        not_yets_in_a_row_ = std::min(not_yets_in_a_row_ + 1, kMostNotYets);
        return;
      case NextBatchAnswerHeader::ENDED:
        // Several requests to one worker may be open, and the worker gives this answer to each of
        // them.
        if (!ended_[request.worker]) --workers_left_;
        ended_[request.worker] = true;
        return;
    }
  }

  bool exhausted() const override { return workers_left_ == 0; }

  void FillPosition(RunPosition*) const override {}

 private:
  // A larger count would make no difference, and a count that grows for a year would overflow.
  static constexpr int kMostNotYets = 1 << 30;

  const Stream stream_;
  const uint32_t epoch_;
  const uint32_t park_ms_;
  std::vector<bool> ended_;  // by worker
  int workers_left_;
  size_t next_worker_ = 0;
  int not_yets_in_a_row_ = 0;
};

class OrderedRequests final : public RequestPolicy {
 public:
  OrderedRequests(uint32_t epoch, int num_workers, OrderedSchedule schedule, int rank)
      : epoch_(epoch), num_workers_(num_workers), rank_(rank), schedule_(std::move(schedule)) {}

  absl::optional<PartRequest> NextRequest() override {
    const auto batch = schedule_.Next();
    if (!batch.has_value()) return absl::nullopt;
    PartId wanted;
    wanted.set_stream(TRAIN_STREAM);
    wanted.set_epoch(epoch_);
    wanted.set_lane(batch->lane);
    wanted.set_seq(batch->seq);
    wanted.set_part(rank_);
    PartRequest request;
    request.worker = WorkerOfPart(batch->lane, batch->seq, rank_, num_workers_);
    request.stream = TRAIN_STREAM;
    request.epoch = epoch_;
    request.wanted = std::move(wanted);
    return request;
  }

  void OnAnswer(const PartRequest&, NextBatchAnswerHeader::Result result,
                bool last_of_lane) override {
    CHECK(result == NextBatchAnswerHeader::PART);  // EmbeddingWorkerClient refuses all else
    schedule_.Take(last_of_lane);
  }

  bool exhausted() const override { return !schedule_.Next().has_value(); }

  void FillPosition(RunPosition* position) const override { schedule_.FillPosition(position); }

 private:
  const uint32_t epoch_;
  const int num_workers_;
  const int rank_;
  OrderedSchedule schedule_;
};

}  // namespace

std::unique_ptr<RequestPolicy> MakeAnyWorkerRequests(Stream stream, uint32_t epoch, int num_workers,
                                                     uint32_t park_ms) {
  return std::make_unique<AnyWorkerRequests>(stream, epoch, num_workers, park_ms);
}

std::unique_ptr<RequestPolicy> MakeOrderedRequests(uint32_t epoch, int num_workers,
                                                   OrderedSchedule schedule, int rank) {
  return std::make_unique<OrderedRequests>(epoch, num_workers, std::move(schedule), rank);
}

}  // namespace satrap
