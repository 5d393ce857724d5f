// Tests that the pass that sums squares agrees with the pass that takes the step, for the rows that
// the step holds and for idle rows.

#include "embedding_ps/table/step_of_table.h"

#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/hash.h"
#include "embedding_ps/table/embedding_table.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr uint64_t kRows = 200;

// SGD with rate 1, so that a step is the gradient. Some segments have L2 of mode DENSE, others have
// other rules.
TableConfig ConfigOf(TableConfig::Semantics semantics) {
  TableConfig config;
  config.set_name("t");
  config.set_semantics(semantics);
  for (const char* rules :
       {"dim: 3", "dim: 2 l2: 0.25 l2_mode: DENSE", "dim: 1 l2: 0.25 l2_mode: DENSE",
        "dim: 2 l2: 0.5 l2_mode: TOUCHED", "dim: 4 l2: 2 l2_mode: DENSE gradient_clip_norm: 0.5",
        "dim: 2 l2: 1 l2_mode: DENSE cow_clip { ratio: 0.5 }"}) {
    SegmentConfig* segment = config.add_segments();
    CHECK(google::protobuf::TextFormat::ParseFromString(rules, segment));
    segment->set_name(rules);
    segment->mutable_initializer()->mutable_uniform()->set_low(-1);
    segment->mutable_initializer()->mutable_uniform()->set_high(1);
    segment->mutable_optimizer()->mutable_sgd();
    segment->mutable_optimizer()->set_learning_rate(1);
    if (semantics != TableConfig::GLOBAL && segment->l2_mode() == SegmentConfig::DENSE) {
      segment->set_l2_mode(SegmentConfig::TOUCHED);
    }
  }
  return config;
}

std::unique_ptr<EmbeddingTable> NewTable(const TableConfig& config, int shards) {
  EmbeddingTable::Options options;
  options.shards = shards;
  auto table = EmbeddingTable::Create(config, options);
  CHECK_OK(table.status());
  return *std::move(table);
}

std::vector<float> ValuesOf(const EmbeddingTable& table) {
  std::vector<uint64_t> keys;
  for (uint64_t id = 0; id < kRows; ++id) keys.push_back(Mix64(id));
  std::vector<float> values(keys.size() * table.layout().num_values());
  std::vector<uint8_t> presence((keys.size() + 7) / 8);
  table.Lookup(keys, AbsentRows::kInitialValues, absl::MakeSpan(values), absl::MakeSpan(presence));
  return values;
}

// Takes a step of every third row, in the way an embedding PS does. Returns the squares of the
// step.
double Step(EmbeddingTable* table, int64_t step, float clip_factor) {
  std::vector<uint64_t> keys;
  for (uint64_t id = static_cast<uint64_t>(step) % 3; id < kRows; id += 3)
    keys.push_back(Mix64(id));
  std::vector<float> gradients;
  for (size_t i = 0; i < keys.size() * table->layout().num_values(); ++i) {
    gradients.push_back(static_cast<float>(i % 17) - 8);
  }
  StepContext context;
  context.step = step;
  context.normalizer = 4;
  ExactSum squares;
  const std::vector<uint32_t> counts(keys.size(), 2);
  StepOfTable sum(table, context, &squares);
  context.clip_factor = clip_factor;
  StepOfTable taken(table, context);
  for (StepOfTable* pass : {&sum, &taken}) {
    pass->Add(keys, gradients, counts);
    for (int shard = 0; pass->has_idle_rows() && shard < table->num_shards(); ++shard) {
      pass->FinishIdleRows(shard);
    }
  }
  return squares.Rounded();
}

TEST(StepOfTableTest, SquaresAreThoseOfTheStepsThatFollowWithoutTheFactor) {
  for (const auto semantics : {TableConfig::LAZY, TableConfig::GLOBAL}) {
    const auto table = NewTable(ConfigOf(semantics), 4);
    ExactSum none;
    EXPECT_EQ(StepOfTable(table.get(), StepContext(), &none).has_idle_rows(),
              semantics == TableConfig::GLOBAL);
    for (int64_t step = 0; step < 9; ++step) {
      const std::vector<float> before = ValuesOf(*table);
      const double squares = Step(table.get(), step, 0.25f);
      const std::vector<float> after = ValuesOf(*table);
      double wanted = 0;
      for (size_t i = 0; i < before.size(); ++i) {
        const double g = 4 * (static_cast<double>(before[i]) - after[i]);
        wanted += g * g;
      }
      EXPECT_NEAR(squares, wanted, 1e-5 * wanted) << semantics << " " << step;
    }
  }
}

TEST(StepOfTableTest, SquaresAreTheSameBitsForAnyNumberOfShards) {
  const auto one = NewTable(ConfigOf(TableConfig::GLOBAL), 1);
  const auto many = NewTable(ConfigOf(TableConfig::GLOBAL), 7);
  for (int64_t step = 0; step < 5; ++step) {
    EXPECT_EQ(Step(one.get(), step, 0.5f), Step(many.get(), step, 0.5f));
  }
  EXPECT_EQ(ValuesOf(*one), ValuesOf(*many));
}

TEST(StepOfTableTest, TablesThatAreFrozenOrNotNormalisedHaveNoSquaresAndKnowNoFactor) {
  TableConfig config = ConfigOf(TableConfig::GLOBAL);
  config.set_frozen(true);
  const auto frozen = NewTable(config, 4);
  EXPECT_EQ(Step(frozen.get(), 0, 0.5f), 0);
  config.set_frozen(false);
  config.set_normalisation(NONE);
  config.mutable_segments()->RemoveLast();  // CowClip requires normalised gradients
  const auto scaled = NewTable(config, 4), whole = NewTable(config, 4);
  for (int64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(Step(scaled.get(), step, 0.5f), 0);
    EXPECT_EQ(Step(whole.get(), step, 1), 0);
  }
  EXPECT_EQ(ValuesOf(*scaled), ValuesOf(*whole));
}

}  // namespace
}  // namespace satrap
