// Tests properties of tables with semantics GLOBAL. global_reference_test.cc compares them with a
// reference.

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "common/numeric/hash.h"
#include "common/numeric/random.h"
#include "embedding_ps/table/testing/global_testing.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

bool IsSwept(const TableConfig& config) {
  const auto table = NewTable(config);
  return StepOfTable(table.get(), StepContext()).has_idle_rows();
}

TEST(GlobalSemanticsTest, OnlyRulesThatMoveValuesWithoutGradientsNeedASweep) {
  const std::set<std::string> swept = {"adam",     "adamw",    "amsgrad",
                                       "momentum", "nesterov", "sgd_l1"};
  const auto* oneof = SparseOptimizerConfig::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < oneof->field_count(); ++i) {
    const std::string& kind = oneof->field(i)->name();
    TableConfig config = ConfigOf({kind, kind + " {}"});
    EXPECT_EQ(IsSwept(config), swept.count(kind) > 0) << kind;
    config.mutable_segments(0)->set_l2_mode(SegmentConfig::DENSE);
    EXPECT_TRUE(IsSwept(config)) << kind;
    config.set_frozen(true);
    EXPECT_FALSE(IsSwept(config)) << kind;
    config = ConfigOf({kind, kind + " {}"});
    config.set_semantics(TableConfig::LAZY);
    EXPECT_FALSE(IsSwept(config)) << kind;
  }
}

// All rows of a cut have the same layout, and the fingerprint of the cut identifies that layout.
TEST(GlobalSemanticsTest, RowsOfAnotherLengthHaveAnotherFingerprint) {
  const auto* oneof = SparseOptimizerConfig::descriptor()->FindOneofByName("kind");
  std::vector<std::string> rules = {"rmsprop { momentum: 0.5 }", "rmsprop { centred: true }"};
  for (int i = 0; i < oneof->field_count(); ++i) rules.push_back(oneof->field(i)->name() + " {}");
  for (const std::string& rule : rules) {
    std::vector<TableConfig> configs;
    for (const auto semantics : {TableConfig::LAZY, TableConfig::GLOBAL}) {
      for (const auto mode :
           {SegmentConfig::OCCURRENCE, SegmentConfig::TOUCHED, SegmentConfig::DENSE}) {
        if (mode == SegmentConfig::DENSE && semantics == TableConfig::LAZY) continue;
        configs.push_back(ConfigOf({rule, rule}));
        configs.back().set_semantics(semantics);
        configs.back().mutable_segments(0)->set_l2_mode(mode);
      }
    }
    const auto has_l2_step = [](const TableConfig& config) {
      return config.segments(0).l2_mode() == SegmentConfig::TOUCHED;
    };
    for (const TableConfig& a : configs) {
      for (const TableConfig& b : configs) {
        const bool same_rows =
            NewTable(a)->layout().num_floats() == NewTable(b)->layout().num_floats() &&
            has_l2_step(a) == has_l2_step(b);
        EXPECT_EQ(TableFingerprint(a) == TableFingerprint(b), same_rows)
            << a.ShortDebugString() << " and " << b.ShortDebugString();
      }
    }
  }
}

TEST(GlobalSemanticsTest, AStepThatIsNotFiniteIsNoStep) {
  for (const char* rule : {"adam {}", "rmsprop {}", "adadelta {}", "decayed_adagrad {}", "ftml {}",
                           "momentum {}", "sgd {}", "sgd_l1 { l1: 0.03 }"}) {
    const TableConfig config = ConfigOf({rule, rule});
    const auto table = NewTable(config), without = NewTable(config);
    const std::vector<uint64_t> keys = AllKeys();
    for (EmbeddingTable* each : {table.get(), without.get()}) each->CreateRows(keys);
    SplitMix64 random(6);
    StepContext context, context_without;
    for (; context_without.step < 30; ++context.step) {
      context.finite = random.Below(3) > 0;
      if (!context.finite) {
        const std::vector<float> before = ValuesOf(*table, keys);
        Sweep(table.get(), context);
        ASSERT_EQ(ValuesOf(*table, keys), before) << rule;
        continue;
      }
      std::vector<uint64_t> held;
      for (const uint64_t key : keys) {
        if (random.Below(4) == 0) held.push_back(key);
      }
      const std::vector<float> gradients(held.size() * kDim, 0.25f);
      table->Update(held, gradients, {}, context);
      Sweep(table.get(), context);
      without->Update(held, gradients, {}, context_without);
      Sweep(without.get(), context_without);
      ++context_without.step;
    }
    EXPECT_EQ(ValuesOf(*table, keys), ValuesOf(*without, keys)) << rule;
  }
}

TEST(GlobalSemanticsTest, NeighbouringSegmentsAreSteppedEachByItsOwnRule) {
  // The segments have three kinds of rules: Adam needs a sweep, RMSProp catches up when the row is
  // next stepped, and SGD needs neither.
  TableConfig config = ConfigOf({"adam", "adam {}"});
  for (const char* rule : {"rmsprop {}", "sgd {}", "adam {}"}) {
    *config.add_segments() = ConfigOf({rule, rule}).segments(0);
    config.mutable_segments(config.segments_size() - 1)->set_name(rule);
  }
  std::vector<std::unique_ptr<EmbeddingTable>> apart;
  const std::vector<uint64_t> keys = AllKeys();
  for (int i = 0; i < config.segments_size(); ++i) {
    TableConfig one = config;
    one.clear_segments();
    *one.add_segments() = config.segments(i);
    // All values begin at 1, because random initial values depend on the position of the segment.
    for (SegmentConfig* segment : {one.mutable_segments(0), config.mutable_segments(i)}) {
      segment->mutable_initializer()->mutable_constant()->set_value(1);
    }
    apart.push_back(NewTable(one));
  }
  const auto all = NewTable(config);
  SplitMix64 random(8);
  for (int step = 0; step < 30; ++step) {
    StepContext context;
    context.step = step;
    std::vector<uint64_t> held;
    for (const uint64_t key : keys) {
      if (random.Below(4) == 0) held.push_back(key);
    }
    std::vector<float> gradients;
    for (size_t i = 0; i < held.size() * all->layout().num_values(); ++i) {
      gradients.push_back(static_cast<float>(random.NextDouble() - 0.5));
    }
    all->Update(held, gradients, {}, context);
    Sweep(all.get(), context);
    for (size_t s = 0; s < apart.size(); ++s) {
      std::vector<float> own;
      for (size_t i = 0; i < held.size(); ++i) {
        const auto begin = gradients.begin() + i * all->layout().num_values() + s * kDim;
        own.insert(own.end(), begin, begin + kDim);
      }
      apart[s]->Update(held, own, {}, context);
      Sweep(apart[s].get(), context);
    }
  }
  const std::vector<float> got = ValuesOf(*all, keys);
  for (size_t s = 0; s < apart.size(); ++s) {
    const std::vector<float> wanted = ValuesOf(*apart[s], keys);
    for (size_t i = 0; i < keys.size(); ++i) {
      for (int d = 0; d < kDim; ++d) {
        ASSERT_EQ(got[i * all->layout().num_values() + s * kDim + d], wanted[i * kDim + d])
            << "segment " << s;
      }
    }
  }
}

TEST(GlobalSemanticsTest, AFrozenTableCreatesRowsAndKeepsThem) {
  for (const auto semantics : {TableConfig::LAZY, TableConfig::GLOBAL}) {
    TableConfig config = ConfigOf({"adam", "adam {}"});
    config.set_semantics(semantics);
    config.mutable_segments(0)->mutable_cow_clip();
    config.set_frozen(true);
    const auto table = NewTable(config);
    const std::vector<uint64_t> keys = AllKeys();
    const std::vector<float> before = ValuesOf(*table, keys);
    EXPECT_FALSE(table->needs_sample_counts());
    EXPECT_EQ(table->Update(keys, std::vector<float>(keys.size() * kDim, 1), {}, StepContext()),
              kRows);
    EXPECT_EQ(ValuesOf(*table, keys), before);
    EXPECT_EQ(table->rows(), kRows);
  }
}

TEST(GlobalSemanticsTest, AnUntouchedRowKeepsItsBound) {
  TableConfig config = ConfigOf({"sgd", "sgd {}"});
  SegmentConfig* segment = config.mutable_segments(0);
  segment->mutable_optimizer()->set_learning_rate(1);
  segment->mutable_initializer()->mutable_constant()->set_value(1);
  segment->set_l2(4);
  segment->set_l2_mode(SegmentConfig::DENSE);
  segment->set_weight_bound(2);
  auto table = NewTable(config);
  table->CreateRows({7});
  Sweep(table.get(), StepContext());
  for (const float value : ValuesOf(*table, {7})) EXPECT_FLOAT_EQ(value, -2) << "1 - 4, bounded";
}

// In the released code of CowClip a row without samples counts as a row with one sample. So its L2
// is clipped, too.
TEST(GlobalSemanticsTest, CowClipOfAnUntouchedRowCountsOneSample) {
  TableConfig config = ConfigOf({"sgd", "sgd {}"});
  SegmentConfig* segment = config.mutable_segments(0);
  segment->mutable_optimizer()->set_learning_rate(1);
  segment->mutable_initializer()->mutable_constant()->set_value(1);
  segment->set_l2(4);
  segment->set_l2_mode(SegmentConfig::DENSE);
  segment->mutable_cow_clip()->set_form(CowClipConfig::RELEASED);
  segment->mutable_cow_clip()->set_ratio(0.25f);
  auto table = NewTable(config);
  table->CreateRows({7});
  Sweep(table.get(), StepContext());
  for (const float value : ValuesOf(*table, {7})) EXPECT_FLOAT_EQ(value, 0.75f);
  segment->mutable_cow_clip()->set_form(CowClipConfig::PAPER);
  table = NewTable(config);
  table->CreateRows({7});
  Sweep(table.get(), StepContext());
  for (const float value : ValuesOf(*table, {7})) EXPECT_FLOAT_EQ(value, -3) << "L2 is not clipped";
}

// The sweep changes all rows. Wherever the cut's writer is at that time, the cut must have the rows
// as they were before the sweep.
TEST(GlobalSemanticsTest, ACutUnderWayKeepsTheRowsOfBeforeTheSweep) {
  TableConfig config = ConfigOf({"adam", "adam {}"});
  SplitMix64 random(4);
  for (int round = 0; round < 20; ++round) {
    const auto table = NewTable(config, 3);
    const std::vector<uint64_t> keys = AllKeys();
    StepContext context;
    table->Update(keys, std::vector<float>(keys.size() * kDim, 1), {}, context);
    const size_t floats = table->layout().num_floats();
    std::map<uint64_t, std::vector<float>> wanted, got;
    for (const uint64_t key : keys) {
      table->ReadRows({key}, absl::MakeSpan(wanted[key] = std::vector<float>(floats)));
    }
    const uint64_t cut = table->BeginCut(std::make_shared<CopyBudget>(int64_t{1} << 30));
    const auto sweep_after = static_cast<int>(random.Below(kNumPartitions));
    for (int partition = 0; partition < kNumPartitions; ++partition) {
      if (partition == sweep_after) {
        ++context.step;
        // The same step updates an existing row and creates a new one.
        table->Update({keys[3], Mix64(1000)}, std::vector<float>(2 * kDim, 1), {}, context);
        Sweep(table.get(), context);
        Sweep(table.get(), context);
      }
      CutRead read = CutRead::kMore;
      while (read == CutRead::kMore) {
        uint64_t read_keys[4];
        std::vector<float> rows(4 * floats);
        size_t n = 0;
        read = table->ReadCut(cut, partition, 4, read_keys, rows.data(), &n);
        for (size_t i = 0; i < n; ++i) {
          got[read_keys[i]] = {rows.begin() + i * floats, rows.begin() + (i + 1) * floats};
        }
      }
      ASSERT_EQ(read, CutRead::kEnded);
    }
    table->EndCut(cut);
    EXPECT_EQ(got, wanted) << "round " << round;
    EXPECT_NE(ValuesOf(*table, {keys[5]}),
              std::vector<float>(wanted[keys[5]].begin(), wanted[keys[5]].begin() + kDim));
  }
}

TEST(GlobalSemanticsTest, ASweepThatNeedsMoreCopiesThanTheBudgetHasGivesTheCutUp) {
  const auto table = NewTable(ConfigOf({"adam", "adam {}"}));
  table->CreateRows(AllKeys());
  const auto budget = std::make_shared<CopyBudget>(300);
  const uint64_t cut = table->BeginCut(budget);
  Sweep(table.get(), StepContext());
  EXPECT_TRUE(budget->exhausted());
  uint64_t key;
  std::vector<float> row(table->layout().num_floats());
  size_t n = 0;
  EXPECT_EQ(table->ReadCut(cut, 0, 1, &key, row.data(), &n), CutRead::kGone);
}

// A new row must be as if it had always existed: Adam's t counts every step.
TEST(GlobalSemanticsTest, ARowThatIsBornLateHasTheBiasCorrectionOfItsStep) {
  TableConfig config = ConfigOf({"adam", "adam {}"});
  config.mutable_segments(0)->mutable_initializer()->mutable_constant()->set_value(0);
  config.mutable_segments(0)->mutable_optimizer()->set_learning_rate(1);
  const auto table = NewTable(config);
  StepContext context;
  context.step = 9;
  table->Update({7}, std::vector<float>(kDim, 1), {}, context);
  const double m = 0.1 / (1 - std::pow(0.9, 10)), v = 0.001 / (1 - std::pow(0.999, 10));
  EXPECT_NEAR(ValuesOf(*table, {7})[0], -m / std::sqrt(v), 2e-6);
}

}  // namespace
}  // namespace satrap
