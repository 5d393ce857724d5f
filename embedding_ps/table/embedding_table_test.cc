#include "embedding_ps/table/embedding_table.h"

#include <atomic>
#include <limits>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/hash.h"
#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TableConfig Config() {
  TableConfig config;
  config.set_name("t");
  config.set_id(3);
  for (const int dim : {5, 1}) {
    SegmentConfig* segment = config.add_segments();
    segment->set_dim(dim);
    segment->mutable_initializer()->mutable_uniform()->set_low(-1);
    segment->mutable_initializer()->mutable_uniform()->set_high(1);
    segment->mutable_optimizer()->mutable_adagrad();
    segment->mutable_optimizer()->set_learning_rate(0.1f);
  }
  return config;
}
constexpr size_t kValues = 6;

std::unique_ptr<EmbeddingTable> NewTable(int shards = 4, uint64_t seed = 1) {
  EmbeddingTable::Options options;
  options.shards = shards;
  options.seed = seed;
  auto table = EmbeddingTable::Create(Config(), options);
  CHECK(table.ok()) << table.status().ToString();
  return *std::move(table);
}

struct Answer {
  std::vector<float> values;
  std::vector<uint8_t> presence;
  bool present(size_t i) const { return (presence[i / 8] >> (i % 8) & 1) != 0; }
  std::vector<float> row(size_t i) const {
    return {values.begin() + i * kValues, values.begin() + (i + 1) * kValues};
  }
};

Answer Look(const EmbeddingTable& table, const std::vector<uint64_t>& keys,
            AbsentRows mode = AbsentRows::kInitialValues) {
  Answer answer{std::vector<float>(keys.size() * kValues, -7),
                std::vector<uint8_t>((keys.size() + 7) / 8, 0xff)};
  table.Lookup(keys, mode, absl::MakeSpan(answer.values), absl::MakeSpan(answer.presence));
  return answer;
}

std::vector<float> Gradients(size_t keys, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> gradients(keys * kValues);
  for (float& g : gradients) g = static_cast<float>(random.NextDouble() - 0.5);
  return gradients;
}

TEST(EmbeddingTableTest, LookupNeverChangesTheTable) {
  const auto table = NewTable();
  const int64_t bytes = table->bytes();
  Look(*table, {1, 2, 3});
  Look(*table, {1, 2, 3}, AbsentRows::kZeros);
  EXPECT_EQ(table->rows(), 0);
  EXPECT_EQ(table->bytes(), bytes);
}

TEST(EmbeddingTableTest, AbsentRowGivesInTrainingWhatUpdateStartsFrom) {
  const auto table = NewTable();
  const Answer before = Look(*table, {42});
  EXPECT_FALSE(before.present(0));
  EXPECT_EQ(table->Update({42}, std::vector<float>(kValues, 0), {}, StepContext()), 1);
  const Answer after = Look(*table, {42});
  EXPECT_TRUE(after.present(0));
  EXPECT_EQ(after.values, before.values);
}

TEST(EmbeddingTableTest, AbsentRowGivesZerosInEvaluation) {
  const auto table = NewTable();
  const Answer answer = Look(*table, {42}, AbsentRows::kZeros);
  EXPECT_EQ(answer.values, std::vector<float>(kValues, 0));
  EXPECT_FALSE(answer.present(0));
}

TEST(EmbeddingTableTest, RowBelongsToItsKeyWhateverElseIsAbsent) {
  const auto table = NewTable();
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 500; ++i) keys.push_back(Mix64(i));
  const std::vector<float> gradients = Gradients(keys.size(), 3);
  table->Update(keys, gradients, {}, StepContext());
  // Present and absent keys alternate, in descending order of their ids.
  std::vector<uint64_t> asked;
  for (uint64_t i = 500; i-- > 0;) {
    asked.push_back(Mix64(i));
    asked.push_back(Mix64(i + 100000));
  }
  const Answer mixed = Look(*table, asked);
  for (size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(mixed.row(i), Look(*table, {asked[i]}).row(0));
    EXPECT_EQ(mixed.present(i), i % 2 == 0);
  }
}

TEST(EmbeddingTableTest, EveryKeyIsLegal) {
  const auto table = NewTable();
  const std::vector<uint64_t> keys = {0, 1, std::numeric_limits<uint64_t>::max(), uint64_t{1} << 63,
                                      0xffffffff};
  EXPECT_EQ(table->Update(keys, Gradients(keys.size(), 1), {}, StepContext()), 5);
  const Answer answer = Look(*table, keys);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_TRUE(answer.present(i));
  EXPECT_EQ(table->rows(), 5);
}

// Peers must send unique keys. If a peer sends a key twice, the index must not break.
TEST(EmbeddingTableTest, ARepeatedKeyStillHasOneRow) {
  const auto table = NewTable();
  table->Update({42, 42}, Gradients(2, 1), {}, StepContext());
  EXPECT_EQ(table->rows(), 1);
  EXPECT_EQ(table->Keys(0, kNumPartitions - 1), std::vector<uint64_t>{42});
}

TEST(EmbeddingTableTest, AnEmptyCallIsNothing) {
  const auto table = NewTable();
  EXPECT_EQ(table->Update({}, {}, {}, StepContext()), 0);
  Look(*table, {});
}

TEST(EmbeddingTableTest, BitsDoNotDependOnShardsOrOrderOfKeys) {
  const auto a = NewTable(1);
  const auto b = NewTable(7);
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 300; ++i) keys.push_back(Mix64(i));
  const std::vector<float> gradients = Gradients(keys.size(), 3);
  const std::vector<uint64_t> reversed(keys.rbegin(), keys.rend());
  std::vector<float> reversed_gradients;
  for (size_t i = keys.size(); i-- > 0;) {
    reversed_gradients.insert(reversed_gradients.end(), gradients.begin() + i * kValues,
                              gradients.begin() + (i + 1) * kValues);
  }
  for (int step = 0; step < 3; ++step) {
    a->Update(keys, gradients, {}, StepContext());
    b->Update(reversed, reversed_gradients, {}, StepContext());
  }
  EXPECT_EQ(Look(*a, keys).values, Look(*b, keys).values);
}

// Compares the table with a simple map of rows that the same RowUpdater steps. The calls are
// random, and the table grows.
TEST(EmbeddingTableTest, BehavesAsAMapOfRows) {
  for (const int shards : {1, 3, 16}) {
    const auto table = NewTable(shards);
    const auto updater = RowUpdater::Create(Config(), 1);
    ASSERT_TRUE(updater.ok());
    std::unordered_map<uint64_t, std::vector<float>> reference;
    SplitMix64 random(shards);
    for (int call = 0; call < 400; ++call) {
      // The keys of a range, in random order. Neighbours in the range differ either in their low
      // bits or in their high bits.
      std::vector<uint64_t> keys;
      const uint64_t first = random.Below(20000), count = random.Below(300);
      const int shift = random.Below(2) == 0 ? 0 : 44;
      for (uint64_t i = 0; i < count; ++i) keys.push_back((first + i) << shift);
      for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Below(i)]);
      if (random.Below(2) == 0) {
        const std::vector<float> gradients = Gradients(keys.size(), call);
        StepContext context;
        context.step = call;
        context.normalizer = 3;
        int64_t created = 0;
        RowUpdater::Step step(*updater, context, context.step);
        for (size_t i = 0; i < keys.size(); ++i) {
          auto [row, is_new] = reference.try_emplace(keys[i], updater->layout().num_floats());
          if (is_new) updater->InitRow(keys[i], row->second.data());
          created += is_new;
          step.VisitRow(keys[i], &gradients[i * kValues], 0, row->second.data());
        }
        ASSERT_EQ(table->Update(keys, gradients, {}, context), created);
      } else {
        const Answer answer = Look(*table, keys, AbsentRows::kZeros);
        for (size_t i = 0; i < keys.size(); ++i) {
          const auto row = reference.find(keys[i]);
          ASSERT_EQ(answer.present(i), row != reference.end());
          std::vector<float> wanted(kValues, 0);
          if (row != reference.end()) std::copy_n(row->second.begin(), kValues, wanted.begin());
          ASSERT_EQ(answer.row(i), wanted);
        }
      }
      ASSERT_EQ(table->rows(), static_cast<int64_t>(reference.size()));
    }
    EXPECT_GT(reference.size(), 10000u);
  }
}

TEST(EmbeddingTableTest, WholeRowsMoveToAnotherTable) {
  const auto from = NewTable(5);
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 1000; ++i) keys.push_back(Mix64(i));
  from->Update(keys, Gradients(keys.size(), 1), {}, StepContext());
  const auto to = NewTable(2);
  to->Update({12345}, Gradients(1, 1), {}, StepContext());
  to->Clear();
  EXPECT_EQ(to->rows(), 0);
  for (const auto& [first, last] : {std::pair(0, 99), std::pair(100, kNumPartitions - 1)}) {
    const std::vector<uint64_t> some = from->Keys(first, last);
    EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
    for (const uint64_t key : some) {
      EXPECT_GE(PartitionOf(key), first);
      EXPECT_LE(PartitionOf(key), last);
    }
    std::vector<float> rows(some.size() * from->layout().num_floats());
    from->ReadRows(some, absl::MakeSpan(rows));
    to->WriteRows(some, rows);
  }
  EXPECT_EQ(to->rows(), 1000);
  // The state was also copied, so the next step must give the same bits.
  from->Update(keys, Gradients(keys.size(), 2), {}, StepContext());
  to->Update(keys, Gradients(keys.size(), 2), {}, StepContext());
  EXPECT_EQ(Look(*from, keys).values, Look(*to, keys).values);
}

TEST(EmbeddingTableTest, BytesPerRowStayWithinTheBudget) {
  const auto table = NewTable(2);
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 100000; ++i) keys.push_back(Mix64(i));
  table->Update(keys, Gradients(keys.size(), 1), {}, StepContext());
  const double row_bytes = static_cast<double>(table->layout().stride_bytes());
  // Allows 24 bytes per row for index and metadata, and one partly filled huge page for each shard.
  EXPECT_LE(static_cast<double>(table->bytes()), 1e5 * (row_bytes + 24) + 2 * 2097152);
}

TEST(EmbeddingTableTest, ShardsGrowOneAfterAnotherSoThatARowCostsAboutTheSameAtAnySize) {
  TableConfig config = Config();
  for (SegmentConfig& segment : *config.mutable_segments()) {
    segment.set_dim(1);
    segment.mutable_optimizer()->mutable_sgd();
  }
  EmbeddingTable::Options options;
  options.shards = 16;
  const auto table = *EmbeddingTable::Create(config, options);
  const int64_t stride = static_cast<int64_t>(table->layout().stride_bytes());
  for (uint64_t i = 0; i < 600; ++i) {
    std::vector<uint64_t> keys;
    for (uint64_t j = 0; j < 1000; ++j) keys.push_back(Mix64(1000 * i + j));
    table->CreateRows(keys);
    const int64_t rows = table->rows();
    if (rows < 300000) continue;
    // The rows of a shard fit in its small pages, so all other bytes belong to the index.
    ASSERT_LE(static_cast<double>(table->bytes() - rows * stride) / static_cast<double>(rows), 22.4)
        << rows << " rows";
  }
}

// Each of four threads steps its own keys and reads the keys of all threads. Every row that is read
// must be in a state that some step left, never half updated.
TEST(EmbeddingTableTest, RowsAreWholeUnderConcurrentUpdates) {
  TableConfig config = Config();
  for (SegmentConfig& segment : *config.mutable_segments()) {
    segment.mutable_initializer()->mutable_constant()->set_value(0);
    segment.mutable_optimizer()->mutable_sgd();
    segment.mutable_optimizer()->set_learning_rate(1);
  }
  auto table = EmbeddingTable::Create(config, EmbeddingTable::Options());
  ASSERT_TRUE(table.ok());
  constexpr int kThreads = 4;
  constexpr int kSteps = 50;
  constexpr uint64_t kKeys = 400;
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<uint64_t> own, all;
      for (uint64_t i = 0; i < kKeys * kThreads; ++i) {
        all.push_back(Mix64(i));
        if (i % kThreads == static_cast<uint64_t>(t)) own.push_back(Mix64(i));
      }
      const std::vector<float> ones(own.size() * kValues, -1);
      for (int step = 0; step < kSteps; ++step) {
        (*table)->Update(own, ones, {}, StepContext());
        const Answer answer = Look(**table, all);
        for (size_t i = 0; i < all.size(); ++i) {
          for (const float value : answer.row(i)) torn += value != answer.values[i * kValues];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  std::vector<uint64_t> all;
  for (uint64_t i = 0; i < kKeys * kThreads; ++i) all.push_back(Mix64(i));
  EXPECT_EQ(Look(**table, all).values, std::vector<float>(all.size() * kValues, kSteps));
}

TEST(EmbeddingTableTest, RefusesOptionsOutOfRange) {
  EmbeddingTable::Options options;
  options.shards = 0;
  EXPECT_FALSE(EmbeddingTable::Create(Config(), options).ok());
  options.shards = 1;
  options.reserve_rows = -1;
  EXPECT_FALSE(EmbeddingTable::Create(Config(), options).ok());
}

}  // namespace
}  // namespace satrap
