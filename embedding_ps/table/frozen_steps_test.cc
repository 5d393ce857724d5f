// Tests that a table that was frozen for some steps continues as if those steps had not happened.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/hash.h"
#include "common/numeric/random.h"
#include "embedding_ps/table/testing/global_testing.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int kSteps = 10;   // before the table is frozen, and after
constexpr int kFrozen = 37;  // steps that it is frozen in

std::unique_ptr<EmbeddingTable> TableAt(const TableConfig& config, int64_t first_step,
                                        int64_t frozen_steps) {
  EmbeddingTable::Options options;
  options.shards = 4;
  options.first_step = first_step;
  options.frozen_steps = frozen_steps;
  auto table = EmbeddingTable::Create(config, options);
  CHECK_OK(table.status());
  return *std::move(table);
}

std::vector<float> RowsOf(const EmbeddingTable& table, const std::vector<uint64_t>& keys) {
  std::vector<float> rows(keys.size() * table.layout().num_floats());
  table.ReadRows(keys, absl::MakeSpan(rows));
  return rows;
}

// Copies all rows, like a generation that loads what an earlier one has saved.
void TakeRows(const EmbeddingTable& from, EmbeddingTable* to) {
  const std::vector<uint64_t> keys = from.Keys(0, kNumPartitions - 1);
  to->WriteRows(keys, RowsOf(from, keys));
}

// Trains steps [first, first + steps) of the run, with gradients for random keys.
void Train(EmbeddingTable* table, int64_t first, int steps, uint64_t seed) {
  SplitMix64 random(seed);
  for (int i = 0; i < steps; ++i) {
    std::vector<uint64_t> held;
    for (const uint64_t key : AllKeys()) {
      if (random.Below(4) == 0) held.push_back(key);
    }
    StepContext context;
    context.step = first + i;
    table->Update(held, std::vector<float>(held.size() * kDim, 0.25f + 0.125f * i),
                  std::vector<uint32_t>(held.size(), 1), context);
    Sweep(table, context);
  }
}

class FrozenStepsTest : public testing::TestWithParam<const char*> {
 protected:
  static TableConfig Config(bool global) {
    const std::string rule = GetParam();
    TableConfig config = ConfigOf({rule, rule});
    if (!global) config.set_semantics(TableConfig::LAZY);
    config.mutable_segments(0)->set_l2(0.01f);
    config.mutable_segments(0)->set_l2_mode(SegmentConfig::TOUCHED);
    return config;
  }
};

TEST_P(FrozenStepsTest, RowsHaveNotMissedThem) {
  for (const bool global : {false, true}) {
    const TableConfig config = Config(global);
    TableConfig frozen_config = config;
    frozen_config.set_frozen(true);
    const auto first = TableAt(config, 0, 0);
    first->CreateRows(AllKeys());
    Train(first.get(), 0, kSteps, 1);
    const auto frozen = TableAt(frozen_config, kSteps, 0);
    TakeRows(*first, frozen.get());
    Train(frozen.get(), kSteps, kFrozen, 2);
    EXPECT_EQ(RowsOf(*frozen, AllKeys()), RowsOf(*first, AllKeys()));
    const auto last = TableAt(config, kSteps + kFrozen, kFrozen);
    TakeRows(*frozen, last.get());
    Train(last.get(), kSteps + kFrozen, kSteps, 3);
    Train(first.get(), kSteps, kSteps, 3);
    EXPECT_EQ(RowsOf(*last, AllKeys()), RowsOf(*first, AllKeys())) << global;
  }
}

// With semantics GLOBAL every row has taken every step of its table. So a row that is created while
// the table is frozen must be as old as the other rows.
TEST_P(FrozenStepsTest, ARowThatWasCreatedMeanwhileIsAsOldAsTheTable) {
  const TableConfig config = Config(/*global=*/true);
  TableConfig frozen_config = config;
  frozen_config.set_frozen(true);
  const auto frozen = TableAt(frozen_config, kSteps + 5, 5);
  Train(frozen.get(), kSteps + 5, kFrozen, 1);
  const auto fresh = TableAt(config, kSteps, 0);
  fresh->CreateRows(AllKeys());
  EXPECT_EQ(RowsOf(*frozen, AllKeys()), RowsOf(*fresh, AllKeys()));
  const auto last = TableAt(config, kSteps + 5 + kFrozen, 5 + kFrozen);
  TakeRows(*frozen, last.get());
  Train(last.get(), kSteps + 5 + kFrozen, 4, 2);
  Train(fresh.get(), kSteps, 4, 2);
  EXPECT_EQ(RowsOf(*last, AllKeys()), RowsOf(*fresh, AllKeys()));
}

INSTANTIATE_TEST_SUITE_P(EachRule, FrozenStepsTest,
                         testing::Values("adam {}", "rmsprop {}", "adadelta {}",
                                         "decayed_adagrad {}", "ftml {}", "sgd_l1 { l1: 0.03 }"),
                         [](const auto& info) {
                           const std::string rule = info.param;
                           return rule.substr(0, rule.find(' '));
                         });

TEST(FrozenStepsOptionsTest, MoreThanThereHaveBeenAreRefused) {
  EmbeddingTable::Options options;
  options.first_step = 3;
  options.frozen_steps = 4;
  EXPECT_FALSE(EmbeddingTable::Create(ConfigOf({"sgd", "sgd {}"}), options).ok());
}

}  // namespace
}  // namespace satrap
