#include "nn_worker/rank/testing/fake_cluster.h"

#include <string>

#include "common/base/check.h"
#include "common/batch/part_placement.h"

namespace satrap {

class FakeCluster::Observer final : public RankObserver {
 public:
  Observer(const RankOptions& options, FakeRecord* record)
      : rank_(options.rank), max_staleness_(options.max_staleness), record_(record) {}

  void OnPhase(absl::string_view phase) override {
    if (rank_ == 0) record_->phases.push_back(std::string(phase));
  }
  void OnStep(const StepEvent& event) override {
    CHECK(event.staleness < max_staleness_);
    if (rank_ == 0 && event.had_part) record_->staleness.push_back(event.staleness);
  }
  void OnGradientNorm(double norm, float clip_factor) override {
    CHECK(clip_factor == 0.5f);
    if (rank_ == 0) record_->norms.push_back(norm);
  }
  void OnEvaluation(const EvaluationEvent& event) override {
    if (rank_ == 0) record_->evaluations.push_back(event);
  }
  void OnCutPause(double seconds) override {
    if (rank_ == 0) record_->pauses.push_back(seconds);
  }
  void OnCutEnded(const CutOutcome&) override {
    CHECK(rank_ == 0);
    ++record_->cut_ends;
  }

 private:
  const int rank_;
  const int max_staleness_;
  FakeRecord* const record_;
};

FakeCluster::FakeCluster(RankOptions options, int num_workers, int64_t delay_us,
                         KillPoints* kill_points)
    : options_(std::move(options)),
      delay_us_(delay_us),
      custody_(options_, this, this),
      allreduce_(options_.num_ranks, &executor, delay_us_, this, this),
      fake_cuts_(options_, &executor, this, this, &custody_) {
  // The pushes of a step go to several workers. When the last push arrives, all workers try to
  // answer the pushes that they have.
  const auto on_push = [this] {
    for (auto& worker : workers_) worker->AnswerPushes();
  };
  for (int w = 0; w < num_workers; ++w) {
    workers_.push_back(std::make_unique<FakeEmbeddingWorker>(
        options_, FakeEmbeddingWorker::Cluster{&executor, this, this, &custody_, on_push},
        1000 * (w + 1)));
  }
  for (int r = 0; r < options_.num_ranks; ++r) ranks_.push_back(MakeRank(r, kill_points));
}

std::unique_ptr<FakeCluster::Rank> FakeCluster::MakeRank(int r, KillPoints* kill_points) {
  RankOptions options = options_;
  options.rank = r;
  auto rank = std::make_unique<Rank>();
  std::vector<rpc::Channel*> channels;
  for (auto& worker : workers_) {
    rank->links.push_back(std::make_unique<FakeLink>(&executor, delay_us_, worker.get()));
    channels.push_back(rank->links.back().get());
  }
  rank->trainer =
      std::make_unique<FakeTrainer>(FakeTrainer::Cluster{&executor, delay_us_, this, this,
                                                         &allreduce_, &fake_cuts_, &evaluation_},
                                    r);
  rank->observer = std::make_unique<Observer>(options, this);
  rank->engine = std::make_unique<RankEngine>(
      options, &executor, channels, rank->trainer.get(), rank->observer.get(),
      [this](absl::Status status) { failures.push_back(std::move(status)); },
      [this](const RunResult& result) { results.push_back(result); }, kill_points);
  return rank;
}

FakeCluster::~FakeCluster() = default;

void FakeCluster::Put(int worker, const FakePart& part) {
  puts_.push_back({worker, part});
  workers_[worker]->Put(part);
}

void FakeCluster::PutRest(const FakeCluster& first, const FakeCut& cut) {
  for (const auto& [worker, part] : first.puts_) {
    if (cut.released.count(NameOf(part.id)) == 0) Put(worker, part);
  }
  for (const auto& [stream, epoch] : first.ends_) End(stream, epoch);
}

void FakeCluster::End(Stream stream, uint32_t epoch) {
  ends_.insert({stream, epoch});
  for (auto& worker : workers_) worker->End(stream, epoch);
}

void FakeCluster::PutOrderedEpoch(uint32_t epoch, const std::vector<int>& batches_of_lane) {
  for (size_t lane = 0; lane < batches_of_lane.size(); ++lane) {
    for (int seq = 0; seq < batches_of_lane[lane]; ++seq) {
      for (int r = 0; r < options_.num_ranks; ++r) {
        FakePart part;
        part.id.set_epoch(epoch);
        part.id.set_lane(lane);
        part.id.set_seq(seq);
        part.id.set_part(r);
        part.last_of_lane = seq + 1 == batches_of_lane[lane];
        Put(WorkerOfPart(lane, seq, r, static_cast<int>(workers_.size())), part);
      }
    }
  }
  End(TRAIN_STREAM, epoch);
}

void FakeCluster::PutEpoch(Stream stream, uint32_t epoch, int count) {
  for (int i = 0; i < count; ++i) {
    FakePart part;
    part.id.set_stream(stream);
    part.id.set_epoch(epoch);
    part.id.set_seq(i);
    Put(i % static_cast<int>(workers_.size()), part);
  }
  End(stream, epoch);
}

void FakeCluster::Start() {
  for (auto& rank : ranks_) rank->engine->Start();
}

bool FakeCluster::Run() {
  for (int i = 0; i < 36000; ++i) {
    if (!failures.empty() || static_cast<int>(results.size()) == options_.num_ranks) return true;
    RunFor(100);
  }
  return false;
}

}  // namespace satrap
