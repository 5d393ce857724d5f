#include "embedding_ps/table_sweep.h"

#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/hash.h"
#include "common/testing/manual_executor.h"
#include "common/thread/mutex.h"
#include "common/thread/thread_pool_executor.h"
#include "embedding_ps/table/step_of_table.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr uint64_t kRows = 3000;

std::unique_ptr<EmbeddingTable> NewTable(TableConfig::Semantics semantics) {
  TableConfig config;
  config.set_name("t");
  config.set_semantics(semantics);
  SegmentConfig* segment = config.add_segments();
  segment->set_dim(4);
  segment->mutable_optimizer()->mutable_adam();
  segment->mutable_optimizer()->set_learning_rate(0.1f);
  EmbeddingTable::Options options;
  options.shards = 5;
  auto table = EmbeddingTable::Create(config, options);
  CHECK_OK(table.status());
  std::vector<uint64_t> keys;
  for (uint64_t id = 0; id < kRows; ++id) keys.push_back(Mix64(id));
  (*table)->Update(keys, std::vector<float>(kRows * 4, 1), {}, StepContext());
  // The Update has stepped all rows in step 0, so this sweep changes no row and only ends the step.
  StepOfTable step(table->get(), StepContext());
  for (int shard = 0; step.has_idle_rows() && shard < 5; ++shard) step.FinishIdleRows(shard);
  return *std::move(table);
}

std::vector<float> RowsOf(const EmbeddingTable& table) {
  const std::vector<uint64_t> keys = table.Keys(0, kNumPartitions - 1);
  std::vector<float> rows(keys.size() * table.layout().num_floats());
  table.ReadRows(keys, absl::MakeSpan(rows));
  return rows;
}

StepContext StepOne() {
  StepContext context;
  context.step = 1;
  return context;
}

TEST(SweepTablesTest, EndsOnceWhenEveryShardOfEveryTableIsSwept) {
  std::vector<std::unique_ptr<EmbeddingTable>> tables;
  for (const auto semantics : {TableConfig::GLOBAL, TableConfig::LAZY, TableConfig::GLOBAL}) {
    tables.push_back(NewTable(semantics));
  }
  const std::vector<float> before = RowsOf(*tables[1]);
  ManualExecutor executor;
  int ended = 0;
  SweepTables(tables, StepOne(), /*threads=*/3, &executor, [&ended] { ++ended; });
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(executor.num_ready(), 3u);
  executor.RunReady();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(RowsOf(*tables[1]), before) << "a lazy table";
  EXPECT_NE(RowsOf(*tables[0]), before);
  EXPECT_EQ(RowsOf(*tables[0]), RowsOf(*tables[2]));
}

TEST(SweepTablesTest, EndsAtOnceWithoutATableThatNeedsIt) {
  std::vector<std::unique_ptr<EmbeddingTable>> tables;
  tables.push_back(NewTable(TableConfig::LAZY));
  ManualExecutor executor;
  int ended = 0;
  SweepTables(tables, StepOne(), 3, &executor, [&ended] { ++ended; });
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(executor.num_ready(), 0u);
}

TEST(SweepTablesTest, AnyNumberOfThreadsGivesTheSameBits) {
  std::vector<std::unique_ptr<EmbeddingTable>> wanted;
  wanted.push_back(NewTable(TableConfig::GLOBAL));
  StepOfTable step(wanted[0].get(), StepOne());
  for (int shard = 0; shard < 5; ++shard) step.FinishIdleRows(shard);
  for (const int threads : {1, 2, 8}) {
    std::vector<std::unique_ptr<EmbeddingTable>> tables;
    tables.push_back(NewTable(TableConfig::GLOBAL));
    ThreadPoolExecutor executor(4);
    Mutex mutex;
    CondVar condition;
    bool ended = false;
    SweepTables(tables, StepOne(), threads, &executor, [&] {
      MutexLock lock(&mutex);
      ended = true;
      condition.NotifyAll();
    });
    {
      MutexLock lock(&mutex);
      while (!ended) condition.Wait(&mutex);
    }
    EXPECT_EQ(RowsOf(*tables[0]), RowsOf(*wanted[0])) << threads;
  }
}

std::unique_ptr<EmbeddingTable> NewDecayedTable() {
  TableConfig config;
  config.set_name("t");
  config.set_semantics(TableConfig::GLOBAL);
  SegmentConfig* segment = config.add_segments();
  segment->set_dim(4);
  segment->mutable_initializer()->mutable_uniform()->set_low(-1);
  segment->mutable_initializer()->mutable_uniform()->set_high(1);
  segment->mutable_optimizer()->mutable_sgd();
  segment->mutable_optimizer()->set_learning_rate(0.1f);
  segment->set_l2(0.3f);
  segment->set_l2_mode(SegmentConfig::DENSE);
  EmbeddingTable::Options options;
  options.shards = 5;
  auto table = EmbeddingTable::Create(config, options);
  CHECK_OK(table.status());
  std::vector<uint64_t> keys;
  for (uint64_t id = 0; id < kRows; ++id) keys.push_back(Mix64(id));
  (*table)->CreateRows(keys);
  return *std::move(table);
}

TEST(AddIdleSquaresTest, AnyNumberOfThreadsGivesTheSameBits) {
  std::vector<std::unique_ptr<EmbeddingTable>> tables;
  tables.push_back(NewTable(TableConfig::GLOBAL));
  for (int i = 0; i < 2; ++i) tables.push_back(NewDecayedTable());
  ExactSum held;
  held.Add(0x1p-60);
  ExactSum wanted = held;
  for (const int table : {2, 1}) {
    StepOfTable squares(tables[table].get(), StepOne(), &wanted);
    for (int shard = 4; shard >= 0; --shard) squares.FinishIdleRows(shard);
  }
  EXPECT_GT(wanted.Rounded(), 100);
  for (const int threads : {1, 2, 8}) {
    ThreadPoolExecutor executor(4);
    Mutex mutex;
    CondVar condition;
    std::vector<double> got;
    AddIdleSquares(tables, StepOne(), threads, &executor, held, [&](const ExactSum& squares) {
      MutexLock lock(&mutex);
      got.push_back(squares.Rounded());
      condition.NotifyAll();
    });
    MutexLock lock(&mutex);
    while (got.empty()) condition.Wait(&mutex);
    EXPECT_EQ(got[0], wanted.Rounded()) << threads;
  }
}

TEST(AddIdleSquaresTest, EndsAtOnceWithoutATableThatHasSome) {
  std::vector<std::unique_ptr<EmbeddingTable>> tables;
  tables.push_back(NewTable(TableConfig::GLOBAL));
  ManualExecutor executor;
  ExactSum held;
  held.Add(3);
  double got = 0;
  AddIdleSquares(tables, StepOne(), 3, &executor, held,
                 [&got](const ExactSum& squares) { got = squares.Rounded(); });
  EXPECT_EQ(got, 3);
}

}  // namespace
}  // namespace satrap
