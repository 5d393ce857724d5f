// Tests that a cut has the content at the mark, whatever happens to the table until the cut ends.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/hash.h"
#include "common/numeric/random.h"
#include "embedding_ps/table/embedding_table.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr size_t kDim = 2;
constexpr size_t kFloats = 2 * kDim;  // Adagrad
constexpr int64_t kMuch = int64_t{1} << 40;

using Rows = std::map<uint64_t, std::vector<float>>;

std::unique_ptr<EmbeddingTable> NewTable(const EmbeddingTable::Options& options) {
  TableConfig config;
  config.set_name("t");
  SegmentConfig* segment = config.add_segments();
  segment->set_dim(kDim);
  segment->mutable_initializer()->mutable_uniform()->set_low(-1);
  segment->mutable_initializer()->mutable_uniform()->set_high(1);
  segment->mutable_optimizer()->mutable_adagrad();
  auto table = EmbeddingTable::Create(config, options);
  CHECK_OK(table.status());
  return *std::move(table);
}

std::unique_ptr<EmbeddingTable> NewTable(int shards) {
  EmbeddingTable::Options options;
  options.shards = shards;
  return NewTable(options);
}

// All rows of the table, read by calls that do not use cuts.
Rows ContentOf(const EmbeddingTable& table) {
  Rows content;
  const std::vector<uint64_t> keys = table.Keys(0, kNumPartitions - 1);
  std::vector<float> rows(keys.size() * kFloats);
  table.ReadRows(keys, absl::MakeSpan(rows));
  for (size_t i = 0; i < keys.size(); ++i) {
    content[keys[i]] = {rows.begin() + i * kFloats, rows.begin() + (i + 1) * kFloats};
  }
  return content;
}

void Update(EmbeddingTable* table, const std::vector<uint64_t>& keys, float gradient = 1) {
  table->Update(keys, std::vector<float>(keys.size() * kDim, gradient), {}, StepContext());
}

// Reads a cut in pieces. Partitions are read in any order, and several at the same time.
class CutReader {
 public:
  CutReader(EmbeddingTable* table, std::shared_ptr<CopyBudget> budget, uint64_t seed)
      : table_(table), random_(seed), cut_(table->BeginCut(budget)) {
    for (int partition = 0; partition < kNumPartitions; ++partition) left_.push_back(partition);
  }
  CutReader(EmbeddingTable* table, uint64_t seed)
      : CutReader(table, std::make_shared<CopyBudget>(kMuch), seed) {}

  bool done() const { return left_.empty(); }
  uint64_t cut() const { return cut_; }
  const Rows& rows() const { return rows_; }

  // Reads the next rows of some partition. Returns false if the cut is gone.
  bool ReadSome() {
    const size_t at = random_.Below(std::min<size_t>(left_.size(), 8));
    const int partition = left_[at];
    const size_t max_rows = 1 + random_.Below(5);
    uint64_t keys[5];
    float rows[5 * kFloats];
    size_t n = 0;
    const CutRead read = table_->ReadCut(cut_, partition, max_rows, keys, rows, &n);
    if (read == CutRead::kGone) return false;
    CHECK(n <= max_rows);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(PartitionOf(keys[i]), partition);
      const auto last = last_key_.find(partition);
      EXPECT_TRUE(last == last_key_.end() || keys[i] > last->second) << "keys ascend";
      last_key_[partition] = keys[i];
      EXPECT_TRUE(
          rows_.emplace(keys[i], std::vector<float>(rows + i * kFloats, rows + (i + 1) * kFloats))
              .second);
    }
    if (read == CutRead::kEnded) left_.erase(left_.begin() + static_cast<long>(at));
    return true;
  }
  bool ReadAll() {
    while (!done()) {
      if (!ReadSome()) return false;
    }
    return true;
  }

 private:
  EmbeddingTable* const table_;
  SplitMix64 random_;
  const uint64_t cut_;
  std::vector<int> left_;
  std::map<int, uint64_t> last_key_;
  Rows rows_;
};

// Makes a random change to some rows, both existing and new ones.
void ChangeSomething(EmbeddingTable* table, uint64_t num_ids, SplitMix64* random) {
  std::set<uint64_t> unique;
  const uint64_t n = random->Below(60);
  for (uint64_t i = 0; i < n; ++i) unique.insert(KeyOf(random->Below(num_ids), 7));
  const std::vector<uint64_t> keys(unique.begin(), unique.end());
  switch (random->Below(4)) {
    case 0:
      table->CreateRows(keys);
      break;
    case 1: {
      std::vector<float> rows(keys.size() * kFloats);
      for (float& value : rows) value = static_cast<float>(random->NextDouble());
      table->WriteRows(keys, rows);
      break;
    }
    case 2: {
      std::vector<float> values(keys.size() * kDim);
      std::vector<uint8_t> presence((keys.size() + 7) / 8);
      table->Lookup(keys, AbsentRows::kZeros, absl::MakeSpan(values), absl::MakeSpan(presence));
      break;
    }
    default:
      Update(table, keys, static_cast<float>(random->NextDouble()) - 0.5f);
  }
}

TEST(TableCutTest, IsTheContentAtTheMarkWhateverChangesMeanwhile) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SplitMix64 random(seed);
    const int shards = static_cast<int>(1 + random.Below(seed % 7 == 0 ? 1000 : 20));
    const auto table = NewTable(shards);
    // With few ids each row changes often. With many, indexes grow during the cut.
    const uint64_t num_ids = random.Below(2) == 0 ? 300 : 20000;
    for (uint64_t i = random.Below(200); i > 0; --i) ChangeSomething(table.get(), num_ids, &random);
    for (int cut = 0; cut < 4; ++cut) {
      const Rows wanted = ContentOf(*table);
      CutReader reader(table.get(), seed * 10 + cut);
      const bool abandon = random.Below(3) == 0;
      const uint64_t abandon_after = random.Below(6000);
      bool abandoned = false;
      for (uint64_t reads = 0; !reader.done() && !abandoned; ++reads) {
        if (random.Below(20) == 0) ChangeSomething(table.get(), num_ids, &random);
        ASSERT_TRUE(reader.ReadSome());
        abandoned = abandon && reads == abandon_after;
      }
      if (!abandoned) {
        ASSERT_EQ(reader.rows(), wanted) << "seed " << seed << ", cut " << cut;
      }
      // If the cut is not ended here, the next BeginCut abandons it.
      if (random.Below(2) == 0) table->EndCut(reader.cut());
      ChangeSomething(table.get(), num_ids, &random);
    }
  }
}

// A row gets the mark of a cut that is then abandoned. It keeps this mark while later cuts, any
// number of them, begin without being read. The mark must not be mistaken for the mark of a later
// cut, even when the mark numbers start again from the beginning.
TEST(TableCutTest, TheMarkOfAnAbandonedCutHidesNoRowFromALaterOne) {
  for (int between = 0; between<600; between += between % 256> 250 ? 1 : 7) {
    const auto table = NewTable(3);
    Update(table.get(), {KeyOf(1, 7), KeyOf(2, 7)});
    CutReader abandoned(table.get(), 1);
    Update(table.get(), {KeyOf(1, 7), KeyOf(3, 7)});
    for (int cut = 0; cut < between; ++cut) {
      const uint64_t unread = table->BeginCut(std::make_shared<CopyBudget>(kMuch));
      if (cut % 3 == 0) table->EndCut(unread);
    }
    const Rows wanted = ContentOf(*table);
    CutReader reader(table.get(), 1);
    Update(table.get(), {KeyOf(1, 7)});
    ASSERT_TRUE(reader.ReadAll());
    ASSERT_EQ(reader.rows(), wanted) << between << " cuts between";
  }
}

TEST(TableCutTest, ARowIsCopiedOutOnceAndOnlyAheadOfTheReader) {
  const auto table = NewTable(2);
  const std::vector<uint64_t> keys = {KeyOf(1, 7), KeyOf(2, 7)};
  Update(table.get(), keys);
  auto budget = std::make_shared<CopyBudget>(kMuch);
  CutReader reader(table.get(), budget, 1);
  for (int i = 0; i < 3; ++i) Update(table.get(), {keys[0], KeyOf(100 + i, 7)});
  EXPECT_EQ(budget->rows(), 1);
  EXPECT_GE(budget->bytes(), static_cast<int64_t>(kFloats * sizeof(float)));
  ASSERT_TRUE(reader.ReadAll());
  Update(table.get(), keys);
  EXPECT_EQ(budget->rows(), 1);
}

TEST(TableCutTest, ACutThatNeedsMoreCopiesThanItsBudgetIsGone) {
  const auto table = NewTable(2);
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 100; ++i) keys.push_back(KeyOf(i, 7));
  Update(table.get(), keys);
  auto budget = std::make_shared<CopyBudget>(50 * kFloats * sizeof(float));
  CutReader reader(table.get(), budget, 1);
  EXPECT_TRUE(reader.ReadSome());
  Update(table.get(), keys);
  EXPECT_TRUE(budget->exhausted());
  EXPECT_FALSE(reader.ReadAll());
  table->EndCut(reader.cut());
  // The next cut must have all rows.
  CutReader next(table.get(), 1);
  ASSERT_TRUE(next.ReadAll());
  EXPECT_EQ(next.rows(), ContentOf(*table));
}

TEST(TableCutTest, ACutIsGoneOnceAnotherBeginsOrTheTableIsCleared) {
  const auto table = NewTable(2);
  Update(table.get(), {KeyOf(1, 7)});
  CutReader first(table.get(), 1);
  CutReader second(table.get(), 1);
  EXPECT_FALSE(first.ReadAll());
  table->EndCut(first.cut());
  EXPECT_TRUE(second.ReadSome()) << "the end of another cut does not touch it";
  table->Clear();
  EXPECT_FALSE(second.ReadAll());
}

TEST(TableCutTest, ATableOfSomePartitionsBehavesAsOneOfAll) {
  for (const int shards : {1, 5, 64}) {
    EmbeddingTable::Options options;
    options.shards = shards;
    options.first_partition = 1365;
    options.last_partition = 1400;
    const auto part = NewTable(options);
    const auto whole = NewTable(shards);
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; keys.size() < 2000; ++i) {
      const int partition = PartitionOf(KeyOf(i, 7));
      if (1365 <= partition && partition <= 1400) keys.push_back(KeyOf(i, 7));
    }
    for (EmbeddingTable* table : {part.get(), whole.get()}) Update(table, keys);
    EXPECT_EQ(ContentOf(*part), ContentOf(*whole));
    EXPECT_LE(part->bytes(), whole->bytes());
  }
}

TEST(TableCutTest, AppendedRowsAreFoundOnceTheyAreIndexed) {
  for (const int shards : {1, 7, 16}) {
    const auto from = NewTable(3);
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < 30000; ++i) keys.push_back(KeyOf(i, 7));
    Update(from.get(), keys);
    const Rows content = ContentOf(*from);
    const auto to = NewTable(shards);
    std::vector<EmbeddingTable::Run> runs(2);
    for (const auto& [key, row] : content) {
      to->AppendRows({key}, row, &runs[key >> 63]);
    }
    EXPECT_TRUE(to->Keys(0, kNumPartitions - 1).empty());
    for (int shard = 0; shard < shards; ++shard) {
      EXPECT_EQ(to->IndexShard(shard, {&runs[1], &runs[0]}).code(),
                absl::StatusCode::kInvalidArgument)
          << "they do not ascend";
      ASSERT_TRUE(to->IndexShard(shard, {&runs[0], &runs[1]}).ok());
    }
    EXPECT_EQ(ContentOf(*to), content);
    EXPECT_EQ(to->rows(), 30000);
  }
}

// Two threads update the table while two others read the cut.
TEST(TableCutTest, ThreadsThatUpdateDoNotDisturbThreadsThatRead) {
  const auto table = NewTable(8);
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 20000; ++i) keys.push_back(KeyOf(i, 7));
  Update(table.get(), keys);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Rows wanted = ContentOf(*table);
    const uint64_t cut = table->BeginCut(std::make_shared<CopyBudget>(kMuch));
    std::vector<Rows> read(2);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        SplitMix64 random(static_cast<uint64_t>(10 * repeat + t));
        for (int i = 0; i < 40; ++i) {
          std::vector<uint64_t> some;
          for (uint64_t id = random.Below(300); id < 24000; id += 1 + random.Below(400)) {
            some.push_back(KeyOf(id, 7));
          }
          Update(table.get(), some);
        }
      });
      threads.emplace_back([&, t] {
        std::vector<uint64_t> some(TableShard::kMaxCutRows);
        std::vector<float> rows(some.size() * kFloats);
        for (int partition = t; partition < kNumPartitions; partition += 2) {
          CutRead state = CutRead::kMore;
          while (state == CutRead::kMore) {
            size_t n = 0;
            state = table->ReadCut(cut, partition, 3, some.data(), rows.data(), &n);
            for (size_t i = 0; i < n; ++i) {
              read[t][some[i]] = {rows.begin() + i * kFloats, rows.begin() + (i + 1) * kFloats};
            }
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    read[0].merge(read[1]);
    EXPECT_EQ(read[0], wanted);
    table->EndCut(cut);
  }
}

}  // namespace
}  // namespace satrap
