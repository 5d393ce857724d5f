// A CutEngine of rank 0 with two embedding PSs and a coordinator. All run in one thread and write
// to a real folder.

#ifndef SATRAP_NN_WORKER_CHECKPOINT_TESTING_CUT_ENGINE_FIXTURE_H_
#define SATRAP_NN_WORKER_CHECKPOINT_TESTING_CUT_ENGINE_FIXTURE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/checkpoint/run_log.h"
#include "common/file/testing/failing_file_system.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"
#include "nn_worker/checkpoint/cut_engine.h"
#include "nn_worker/checkpoint/testing/fake_committer.h"
#include "nn_worker/checkpoint/testing/fake_cut_ps.h"
#include "nn_worker/checkpoint/testing/lossy_link.h"

namespace satrap {

inline constexpr int64_t kLimitUs = 60'000'000;

// The records that a rank has released: all `rows` records of a block.
inline LedgerState Released(uint64_t block, uint32_t rows) {
  ProvenanceRange range;
  range.set_block(block);
  range.set_to(rows);
  range.set_block_rows(rows);
  if (block == 0) range.set_bad_records(2);
  Ledger ledger;
  EXPECT_TRUE(ledger.Add(0, range).ok());
  return ledger.ToState();
}

class CutEngineTest : public testing::Test {
 protected:
  CutEngineTest()
      : run_(testing::TempDir() + "/" +
             testing::UnitTest::GetInstance()->current_test_info()->name()),
        coordinator_(&executor_, run_) {
    std::filesystem::remove_all(run_);
    std::filesystem::create_directories(run_);
    MakeEngine();
  }
  ~CutEngineTest() override { std::filesystem::remove_all(run_); }

  void MakeEngine(const JobConfig& extra = JobConfig()) {
    CutEngine::Options options;
    options.job = extra;
    options.job.set_run_dir(run_);
    options.job.set_name("job");
    options.job.mutable_checkpoint()->set_limit_seconds(kLimitUs * 1e-6);
    options.job.add_tables()->set_name("t");
    options.job.mutable_tables(0)->set_id(4);
    options.envelope = FakeEnvelope();
    options.order_fingerprint = 99;
    options.ledger = Released(100, 5);
    options.timeouts = FakeTimeouts();
    options.executor = &executor_;
    options.disk_executor = disk_;
    options.file_system = &file_system_;
    kill_points_ = std::make_unique<KillPoints>(extra, 0, kFakeGeneration, [this] {
      const auto files = DiskFileSystem()->List(Folder(number_));
      killed_at_.push_back(absl::StrCat(ps0_.begun.size() + ps1_.begun.size(), " marks, ",
                                        files.ok() ? files->size() : 0, " files, ",
                                        coordinator_.commits.size(), " commits"));
    });
    options.kill_points = kill_points_.get();
    for (FakeCutPs* ps : {&ps0_, &ps1_}) {
      links_.push_back(std::make_unique<LossyLink>(&executor_, ps, &loss_));
      options.embedding_ps.push_back(links_.back().get());
    }
    links_.push_back(std::make_unique<LossyLink>(&executor_, &coordinator_, &loss_));
    options.coordinator = links_.back().get();
    engine_ = CutEngine::Create(options).value();
  }

  struct Result {
    bool marked = false;
    absl::optional<absl::StatusOr<CutOutcome>> ended;
  };
  // Begins a cut for which each of two ranks has released a block.
  std::shared_ptr<Result> Begin(CutPlan plan = CutPlan()) {
    plan.number = ++number_;
    plan.position.set_step(10 * number_);
    auto result = std::make_shared<Result>();
    engine_->Begin(
        std::move(plan), {Released(2 * number_, 3), Released(2 * number_ + 1, 4)},
        absl::StrCat("dense ", number_),
        [result] {
          EXPECT_FALSE(result->ended.has_value());
          result->marked = true;
        },
        [result](absl::StatusOr<CutOutcome> outcome) {
          EXPECT_FALSE(result->ended.has_value()) << "ended twice";
          result->ended = std::move(outcome);
        });
    return result;
  }
  std::shared_ptr<Result> RunOne(const CutPlan& plan = CutPlan()) {
    auto result = Begin(plan);
    executor_.AdvanceBy(10'000'000);
    EXPECT_TRUE(result->ended.has_value());
    return result;
  }
  std::string Folder(uint64_t number) const {
    return CheckpointsDir(run_) + "/" + CutName(kFakeGeneration, number);
  }

  const std::string run_;
  ManualExecutor executor_;
  ManualExecutor slow_disk_;  // runs only when a test says so
  ManualExecutor* disk_ = &executor_;
  double loss_ = 0;
  FailingFileSystem file_system_;
  FakeCutPs ps0_{&executor_, 0};
  FakeCutPs ps1_{&executor_, 1};
  FakeCommitter coordinator_;
  std::vector<std::unique_ptr<LossyLink>> links_;
  std::vector<std::string> killed_at_;  // marks, files and commits by then
  std::unique_ptr<KillPoints> kill_points_;
  std::unique_ptr<CutEngine> engine_;
  uint64_t number_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CHECKPOINT_TESTING_CUT_ENGINE_FIXTURE_H_
