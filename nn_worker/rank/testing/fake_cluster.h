// A cluster around RankEngines for tests, in one thread on one ManualExecutor. It consists of fakes
// of a rank's peers, which check the protocol while it runs (part_custody.h,
// fake_embedding_worker.h, fake_allreduce.h, fake_cuts.h), and of a network that delays messages
// (fake_network.h). The base classes hold the settings of a test and the events that it can check
// (fake_record.h).

#ifndef SATRAP_NN_WORKER_RANK_TESTING_FAKE_CLUSTER_H_
#define SATRAP_NN_WORKER_RANK_TESTING_FAKE_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "common/testing/manual_executor.h"
#include "nn_worker/rank/rank_engine.h"
#include "nn_worker/rank/testing/fake_allreduce.h"
#include "nn_worker/rank/testing/fake_cuts.h"
#include "nn_worker/rank/testing/fake_embedding_worker.h"
#include "nn_worker/rank/testing/fake_network.h"
#include "nn_worker/rank/testing/fake_part.h"
#include "nn_worker/rank/testing/fake_record.h"
#include "nn_worker/rank/testing/fake_trainer.h"
#include "nn_worker/rank/testing/part_custody.h"

namespace satrap {

class FakeCluster : public FakeOrders, public FakeRecord {
 public:
  // `options` are the options of rank 0. The other ranks have the same, except for `rank`. Each
  // message takes `delay_us`.
  FakeCluster(RankOptions options, int num_workers, int64_t delay_us = 0,
              KillPoints* kill_points = nullptr);
  ~FakeCluster();

  // Queues a part at embedding worker `worker`. In ordered mode this must be the worker that the
  // part belongs to.
  void Put(int worker, const FakePart& part);
  // Ends (stream, epoch) at every worker: no part comes after those that are queued.
  void End(Stream stream, uint32_t epoch);
  // Queues an epoch of an ordered stream: batches_of_lane[l] batches in lane l, with one sample per
  // rank.
  void PutOrderedEpoch(uint32_t epoch, const std::vector<int>& batches_of_lane);
  // Queues an epoch of an unordered stream and its end: `count` parts of one sample, dealt to the
  // workers in turn.
  void PutEpoch(Stream stream, uint32_t epoch, int count);
  // Queues the parts that were queued in `first` and had not been released by `cut`. Loaders that
  // know the cut's ledger send the same parts.
  void PutRest(const FakeCluster& first, const FakeCut& cut);

  void Start();
  // Runs for `ms` of simulated time.
  void RunFor(int64_t ms) { executor.AdvanceBy(ms * 1000); }
  // Runs until all ranks have finished or one has failed. False if that takes more than an hour.
  bool Run();
  bool StartAndRun() {
    Start();
    return Run();
  }

  RankEngine* rank(int r) { return ranks_[r]->engine.get(); }

  ManualExecutor executor;

 private:
  class Observer;
  struct Rank {
    std::vector<std::unique_ptr<FakeLink>> links;
    std::unique_ptr<FakeTrainer> trainer;
    std::unique_ptr<Observer> observer;
    std::unique_ptr<RankEngine> engine;
  };
  std::unique_ptr<Rank> MakeRank(int r, KillPoints* kill_points);

  const RankOptions options_;
  const int64_t delay_us_;
  PartCustody custody_;
  FakeAllreduce allreduce_;
  FakeCuts fake_cuts_;
  FakeEvaluation evaluation_;
  std::vector<std::unique_ptr<FakeEmbeddingWorker>> workers_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::pair<int, FakePart>> puts_;
  std::set<std::pair<Stream, uint32_t>> ends_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_FAKE_CLUSTER_H_
