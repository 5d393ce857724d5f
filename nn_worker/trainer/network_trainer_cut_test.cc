// Tests the trainer's half of a cut (ledgers of all ranks, network, optimizer), and continuing from
// a cut.

#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/checkpoint/ledger/ledger.h"
#include "common/checkpoint/manifest.h"
#include "common/rpc/header.h"
#include "common/thread/mutex.h"
#include "common/thread/serial_executor.h"
#include "common/thread/thread_pool_executor.h"
#include "gtest/gtest.h"
#include "nn_worker/checkpoint/cut_engine.h"
#include "nn_worker/checkpoint/saved_model.h"
#include "nn_worker/trainer/network_trainer.h"
#include "nn_worker/trainer/testing/trainer_ranks.h"

namespace satrap {
namespace {

// Stands in for an embedding PS without rows, or for a coordinator. Answers each call at once.
class WillingPeer final : public rpc::Channel {
 public:
  void Call(const rpc::Method& method, rpc::Message, int64_t, rpc::Callback done) override {
    MutexLock lock(&mutex_);
    calls_.push_back(method.path);
    done(rpc::MessageOf(BeginCutAnswer()));
  }
  std::vector<std::string> calls() {
    MutexLock lock(&mutex_);
    return calls_;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> calls_ GUARDED_BY(mutex_);
};

class NetworkTrainerCutTest : public testing::Test {
 protected:
  NetworkTrainerCutTest()
      : run_(testing::TempDir() + "/" +
             testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(run_);
    std::filesystem::create_directories(run_);
    CutEngine::Options options;
    options.job.set_run_dir(run_);
    options.envelope.set_generation(1);
    options.executor = &serial_;
    options.disk_executor = &pool_;
    options.embedding_ps = {&ps_};
    options.coordinator = &coordinator_;
    cuts_ = CutEngine::Create(options).value();
  }
  ~NetworkTrainerCutTest() override {
    pool_.Stop();
    std::filesystem::remove_all(run_);
  }

  // All ranks begin a cut, after each has released a block of its own, and wait for the cut.
  void Cut(TrainerRanks* ranks, bool last) {
    std::vector<std::future<absl::StatusOr<CutMarked>>> marked;
    std::vector<std::future<absl::StatusOr<bool>>> committed;
    for (int r = 0; r < ranks->size(); ++r) {
      CutPlan plan;
      plan.number = ++number_of_rank_[r];
      plan.last = last;
      ProvenanceRange range;
      range.set_split(static_cast<uint32_t>(plan.number));
      range.set_block(static_cast<uint64_t>(r));
      range.set_to(5);
      range.set_block_rows(5);
      Ledger released;
      CHECK_OK(released.Add(0, range));
      plan.released = released.ToState();
      auto promise = std::make_shared<std::promise<absl::StatusOr<CutMarked>>>();
      marked.push_back(promise->get_future());
      ranks->trainer(r)->BeginCut(
          plan, [promise](absl::StatusOr<CutMarked> result) { promise->set_value(result); },
          [this, r](absl::StatusOr<CutOutcome> outcome) {
            CHECK(r == 0);
            CHECK_OK(outcome.status());
            ++ended_;
          });
      auto committed_promise = std::make_shared<std::promise<absl::StatusOr<bool>>>();
      committed.push_back(committed_promise->get_future());
      ranks->trainer(r)->AwaitCut([committed_promise](absl::StatusOr<bool> result) {
        committed_promise->set_value(result);
      });
    }
    for (auto& result : marked) EXPECT_EQ(result.get()->waits, last);
    for (auto& result : committed) EXPECT_TRUE(*result.get());
  }

  const std::string run_;
  ThreadPoolExecutor pool_{2};
  SerialExecutor serial_{&pool_};
  WillingPeer ps_, coordinator_;
  std::unique_ptr<CutEngine> cuts_;
  std::map<int, uint64_t> number_of_rank_;
  std::atomic<int> ended_{0};
};

TEST_F(NetworkTrainerCutTest, HoldsNetworkAndOptimizerAndTheLedgersOfAllRanks) {
  TrainerRanks ranks(3, TrainerJob(), kTrainerBatch, true, absl::nullopt, cuts_.get(), run_);
  for (uint64_t step = 0; step < 5; ++step) ranks.Step(step, TrainerBatch(step), {20, 40, 60});
  const std::string before = ranks.Saved(0);
  Cut(&ranks, /*last=*/false);
  ranks.Step(5, TrainerBatch(5), {20, 40, 60});
  Cut(&ranks, /*last=*/true);
  EXPECT_EQ(ended_, 2);

  const std::string folder = run_ + "/checkpoints/cut_0001_000001";
  EXPECT_EQ(*ReadDense(folder), before);
  const auto manifest = ReadManifest(run_ + "/checkpoints/cut_0001_000002");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(Ledger::FromState(manifest->ledger())->OfAll().rows, 2 * 3 * 5u);

  // Another generation, with another number of ranks, continues with exactly the same bits.
  TrainerRanks others(2, TrainerJob(), kTrainerBatch, true, absl::nullopt, cuts_.get(), run_);
  const auto model = ReadStartModel(folder, "");
  ASSERT_TRUE(model.ok()) << model.status();
  std::thread second([&] { CHECK_OK(others.trainer(1)->StartFromCut(StartModel())); });
  ASSERT_TRUE(others.trainer(0)->StartFromCut(*model).ok());
  second.join();
  for (int r = 0; r < 2; ++r) EXPECT_EQ(others.Saved(r), before);
}

TEST_F(NetworkTrainerCutTest, ARestoredCutIsLoadedByAllPssAndRanksWithoutOptimizerState) {
  TrainerRanks ranks(2, TrainerJob(), kTrainerBatch, true, absl::nullopt, cuts_.get(), run_);
  for (uint64_t step = 0; step < 5; ++step) ranks.Step(step, TrainerBatch(step), {30, 60});
  const std::vector<float> weights = ranks.Weights(0);
  const std::string before = ranks.Saved(0);
  Cut(&ranks, /*last=*/true);
  ranks.Step(5, TrainerBatch(5), {30, 60});
  std::vector<std::future<absl::Status>> restored;
  for (int r = 0; r < 2; ++r) {
    auto promise = std::make_shared<std::promise<absl::Status>>();
    restored.push_back(promise->get_future());
    ranks.trainer(r)->RestoreModel("cut_0001_000001", [promise](absl::Status status) {
      promise->set_value(std::move(status));
    });
  }
  for (auto& status : restored) EXPECT_TRUE(status.get().ok());
  EXPECT_EQ(ps_.calls().back(), "/satrap.EmbeddingPsControl/LoadTables");
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(ranks.Weights(r), weights);
    EXPECT_NE(ranks.Saved(r), before) << "the optimizer's state is a later one";
  }
}

}  // namespace
}  // namespace satrap
