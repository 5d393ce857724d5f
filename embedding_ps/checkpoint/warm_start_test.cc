// Tests what a warm start takes from saved tables.

#include <memory>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "common/testing/temp_dir.h"
#include "embedding_ps/checkpoint/load_tables.h"
#include "embedding_ps/checkpoint/row_conversion.h"
#include "embedding_ps/checkpoint/testing/saved_tables_fixture.h"
#include "embedding_ps/optimizer/row_step.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using Row = std::vector<float>;

SegmentConfig* AddSegment(const char* name, int dim, TableConfig* config) {
  SegmentConfig* segment = config->add_segments();
  segment->set_name(name);
  segment->set_dim(dim);
  return segment;
}

// A table with segments `embedding` of dim 2 and `linear` of dim 1, both with Adagrad.
TableConfig Config(const char* name, uint32_t id) {
  TableConfig config;
  config.set_name(name);
  config.set_id(id);
  AddSegment("embedding", 2, &config)->mutable_optimizer()->mutable_adagrad();
  AddSegment("linear", 1, &config)->mutable_optimizer()->mutable_adagrad();
  return config;
}

std::unique_ptr<EmbeddingTable> NewTable(const TableConfig& config) {
  EmbeddingTable::Options options;
  options.shards = 2;
  auto table = EmbeddingTable::Create(config, options);
  CHECK_OK(table.status());
  return *std::move(table);
}

// The saved model has rows 1 and 2 in tables "users" (id 3) and "items" (id 4). The values of a row
// are 10 * key + 0, 1 and 2; its states are 10 * key + 3, 4, ...
class WarmStartTest : public testing::Test {
 protected:
  void Save(const std::vector<TableConfig>& configs) {
    std::vector<std::unique_ptr<EmbeddingTable>> tables;
    std::vector<EmbeddingTable*> pointers;
    for (const TableConfig& config : configs) {
      tables.push_back(NewTable(config));
      pointers.push_back(tables.back().get());
      Row rows;
      for (const uint64_t key : {1, 2}) {
        for (int i = 0; i < pointers.back()->layout().num_floats(); ++i) {
          rows.push_back(static_cast<float>(10 * key) + static_cast<float>(i));
        }
      }
      pointers.back()->WriteRows({1, 2}, rows);
    }
    const CutWriter::Result saved = SaveNow(pointers, directory_);
    CHECK_OK(saved.status);
    CheckpointManifest manifest = ManifestOf(pointers, saved.files);
    manifest.set_step(20);
    CHECK_OK(WriteManifest(directory_, manifest));
  }
  LoadResult Load(const std::vector<EmbeddingTable*>& tables) {
    return LoadNow(tables, directory_, DiskFileSystem(), warm_start_);
  }
  static Row RowOf(const EmbeddingTable& table, uint64_t key) {
    Row row(table.layout().num_floats());
    table.ReadRows({key}, absl::MakeSpan(row));
    return row;
  }

  const TempDir temp_;
  const std::string directory_ = temp_.path();
  WarmStartConfig warm_start_;
};

TEST_F(WarmStartTest, EqualRowsAreTakenWithTheirState) {
  Save({Config("users", 3)});
  const auto users = NewTable(Config("users", 3));
  CHECK_OK(Load({users.get()}).status);
  EXPECT_EQ(RowOf(*users, 2), (Row{20, 21, 22, 23, 24, 25}));
}

TEST_F(WarmStartTest, TablesGoByName) {
  Save({Config("users", 3), Config("items", 4)});
  const auto items = NewTable(Config("items", 3));
  CHECK_OK(Load({items.get()}).status);
  EXPECT_EQ(items->rows(), 2);
  EXPECT_EQ(RowOf(*items, 1), (Row{10, 11, 12, 13, 14, 15}));
}

TEST_F(WarmStartTest, WhatIsNotTakenStaysAsItIs) {
  Save({Config("users", 3), Config("items", 4)});
  warm_start_.add_only("us*");
  const auto users = NewTable(Config("users", 3));
  const auto items = NewTable(Config("items", 4));
  const auto words = NewTable(Config("words", 5));
  for (EmbeddingTable* table : {users.get(), items.get(), words.get()}) {
    table->CreateRows({7, 8, 9});  // as preloaded
  }
  CHECK_OK(Load({users.get(), items.get(), words.get()}).status);
  EXPECT_EQ(users->rows(), 2);
  EXPECT_EQ(items->rows(), 3) << "not named";
  EXPECT_EQ(words->rows(), 3) << "the model has none";
  warm_start_.clear_only();
  CHECK_OK(Load({users.get(), items.get(), words.get()}).status);
  EXPECT_EQ(items->rows(), 2);
  EXPECT_EQ(words->rows(), 3);
}

TEST_F(WarmStartTest, StateOfAnotherOptimizerBeginsAnewInItsSegmentAlone) {
  Save({Config("users", 3)});
  TableConfig config = Config("users", 3);
  config.mutable_segments(0)->mutable_optimizer()->mutable_adam();
  config.mutable_segments(1)->mutable_optimizer()->mutable_adagrad()->set_initial_accumulator(9);
  const auto users = NewTable(config);
  CHECK_OK(Load({users.get()}).status);
  // The row: 3 values, then m, v and t of Adam, then the accumulator of `linear`.
  EXPECT_EQ(RowOf(*users, 1), (Row{10, 11, 12, 0, 0, 0, 0, 0, 15}));
}

TEST_F(WarmStartTest, FindsTheOptimizersThatAModelWasSavedWith) {
  TableConfig saved = Config("users", 3);
  OptimizerConfig::RmsProp* rmsprop =
      saved.mutable_segments(0)->mutable_optimizer()->mutable_rmsprop();
  rmsprop->set_momentum(.9f);
  rmsprop->set_centred(true);
  saved.mutable_segments(1)->set_l2_mode(SegmentConfig::TOUCHED);
  AddSegment("third", 1, &saved)->mutable_optimizer()->mutable_ftrl();
  Save({saved});
  TableConfig config = saved;
  config.mutable_segments(0)->mutable_optimizer()->mutable_sgd();
  config.mutable_segments(2)->mutable_optimizer()->mutable_sgd();
  const auto users = NewTable(config);
  CHECK_OK(Load({users.get()}).status);
  const Row row = RowOf(*users, 1);
  const auto saved_table = NewTable(saved);
  const auto at = static_cast<float>(10 + saved_table->layout().segments()[1].state_offset);
  EXPECT_EQ(row, (Row{10, 11, 12, 13, at, 0}));
}

// The step number of the last L2 must start anew. If it were kept, a row whose last L2 was added in
// step 100 of the other run would get no L2 in this run's first 100 steps, because these would look
// like late parts.
TEST_F(WarmStartTest, TheStepOfTheLastL2BeginsAnew) {
  TableConfig config = Config("users", 3);
  config.mutable_segments(0)->set_l2_mode(SegmentConfig::TOUCHED);
  Save({config});
  const auto users = NewTable(config);
  CHECK_OK(Load({users.get()}).status);
  EXPECT_EQ(RowOf(*users, 1), (Row{10, 11, 12, 13, 14, 0, 16}));
  CHECK_OK(LoadNow({users.get()}, directory_).status);
  EXPECT_EQ(RowOf(*users, 1), (Row{10, 11, 12, 13, 14, 15, 16})) << "a cut of the run's own";
}

// A table with one segment of dim 2 and Adadelta, whose state has 4 floats.
TableConfig AdadeltaConfig(TableConfig::Semantics semantics, SegmentConfig::L2Mode l2_mode) {
  TableConfig config;
  config.set_name("users");
  config.set_id(3);
  config.set_semantics(semantics);
  SegmentConfig* const segment = AddSegment("embedding", 2, &config);
  segment->set_l2_mode(l2_mode);
  segment->mutable_optimizer()->mutable_adadelta();
  return config;
}

bool KeepsLastStep(const TableConfig& config) {
  return config.semantics() == TableConfig::GLOBAL &&
         config.segments(0).l2_mode() != SegmentConfig::DENSE;
}

// The other run had the steps 0 to 19, and row 1 was last stepped in step 15. So the row had missed
// steps 16 to 19 when this run began.
TEST_F(WarmStartTest, TheLastStepOfARowIsAsFarBehindAsItWas) {
  const TableConfig config = AdadeltaConfig(TableConfig::GLOBAL, SegmentConfig::OCCURRENCE);
  Save({config});
  const auto users = NewTable(config);
  CHECK_OK(Load({users.get()}).status);
  const Row row = RowOf(*users, 1);
  EXPECT_EQ(Row(row.begin(), row.begin() + 6), (Row{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(StepsPassed(row[6], 0), 5);
  EXPECT_EQ(StepsPassed(row[6], 1000), 1005);
  CHECK_OK(LoadNow({users.get()}, directory_).status);
  EXPECT_EQ(RowOf(*users, 1)[6], 16) << "a cut of the run's own";
}

TEST_F(WarmStartTest, TheLastStepOfSgdL1IsAsFarBehindAsItWas) {
  TableConfig config = Config("users", 3);
  for (SegmentConfig& segment : *config.mutable_segments()) {
    segment.mutable_optimizer()->mutable_sgd_l1();
  }
  Save({config});
  const auto users = NewTable(config);
  CHECK_OK(Load({users.get()}).status);
  const Row row = RowOf(*users, 1);
  // The row: 3 values, then what each weight of `embedding` owes above and below 0, and its last
  // step. Then the same floats follow for `linear`.
  EXPECT_EQ(Row(row.begin(), row.begin() + 7), (Row{10, 11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(StepsPassed(row[7], 3), 7);
  EXPECT_EQ(StepsPassed(row[10], 3), 4);
}

// The other run had 20 steps, and row 1 was last stepped in step 15. This run's rows keep no last
// step, so the state must be decayed over the 4 steps that the row had missed.
TEST_F(WarmStartTest, AStateThatAgesNoMoreIsBroughtUpToDateFirst) {
  Save({AdadeltaConfig(TableConfig::GLOBAL, SegmentConfig::OCCURRENCE)});
  for (const auto& [semantics, l2_mode] : {std::pair(TableConfig::LAZY, SegmentConfig::OCCURRENCE),
                                           std::pair(TableConfig::GLOBAL, SegmentConfig::DENSE)}) {
    TableConfig config = AdadeltaConfig(semantics, l2_mode);
    config.mutable_segments(0)->mutable_optimizer()->mutable_adadelta()->set_rho(.5f);
    const auto users = NewTable(config);
    CHECK_OK(Load({users.get()}).status);
    EXPECT_EQ(RowOf(*users, 1), (Row{10, 11, 12.f / 16, 13.f / 16, 14.f / 16, 15.f / 16}));
  }
}

// The table was frozen in 3 of the model's 20 steps, so it took 17 steps itself. Row 1 was last
// stepped in the table's own step 15, so it missed only 1.
TEST_F(WarmStartTest, StepsInWhichTheTableWasFrozenWereNotMissed) {
  const TableConfig global = AdadeltaConfig(TableConfig::GLOBAL, SegmentConfig::OCCURRENCE);
  Save({global});
  auto manifest = ReadManifest(directory_);
  CHECK_OK(manifest.status());
  FrozenSteps* const frozen = manifest->mutable_position()->add_frozen_steps();
  frozen->set_table(3);
  frozen->set_steps(3);
  CHECK_OK(WriteManifest(directory_, *manifest));
  const auto users = NewTable(global);
  CHECK_OK(Load({users.get()}).status);
  EXPECT_EQ(StepsPassed(RowOf(*users, 1)[6], 0), 2);
}

TEST_F(WarmStartTest, StatesAreTakenWhateverTheSemantics) {
  using Segment = SegmentConfig;
  const TableConfig lazy = AdadeltaConfig(TableConfig::LAZY, Segment::OCCURRENCE);
  const TableConfig global = AdadeltaConfig(TableConfig::GLOBAL, Segment::OCCURRENCE);
  const TableConfig dense = AdadeltaConfig(TableConfig::GLOBAL, Segment::DENSE);
  const Row saved = {10, 11, 12, 13, 14, 15};
  for (const TableConfig& from : {lazy, global, dense}) {
    Save({from});
    for (const TableConfig& to : {lazy, global, dense}) {
      if (KeepsLastStep(from) && !KeepsLastStep(to)) continue;  // its state is aged
      const auto users = NewTable(to);
      CHECK_OK(Load({users.get()}).status);
      Row row = RowOf(*users, 1);
      if (KeepsLastStep(to)) {
        ASSERT_EQ(row.size(), 7u);
        EXPECT_EQ(StepsPassed(row.back(), 7), KeepsLastStep(from) ? 12 : 8);
        row.pop_back();
      }
      EXPECT_EQ(row, saved) << from.ShortDebugString() << " to " << to.ShortDebugString();
    }
  }
}

TEST_F(WarmStartTest, WithManySegmentsTheModelsMustHaveHadOneOptimizer) {
  TableConfig saved = Config("users", 3);
  for (const char* name : {"c", "d", "e", "f"}) {
    AddSegment(name, 1, &saved)->mutable_optimizer()->mutable_adagrad();
  }
  Save({saved});
  TableConfig config = saved;
  for (SegmentConfig& segment : *config.mutable_segments()) {
    segment.mutable_optimizer()->mutable_sgd();
  }
  const auto users = NewTable(config);
  CHECK_OK(Load({users.get()}).status);
  EXPECT_EQ(RowOf(*users, 1), (Row{10, 11, 12, 13, 14, 15, 16}));
}

TEST_F(WarmStartTest, OtherDimsAreAnErrorAndChangeNothing) {
  Save({Config("users", 3)});
  TableConfig config = Config("users", 3);
  config.mutable_segments(0)->set_dim(3);
  const auto users = NewTable(config);
  users->CreateRows({7});
  const LoadResult loaded = Load({users.get()});
  EXPECT_FALSE(loaded.replaced);
  EXPECT_EQ(users->rows(), 1);
  EXPECT_EQ(loaded.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(loaded.status.message(), "table 'users' (id 3)")) << loaded.status;
  EXPECT_TRUE(absl::StrContains(loaded.status.message(), "other segments or dims"))
      << loaded.status;
}

}  // namespace
}  // namespace satrap
